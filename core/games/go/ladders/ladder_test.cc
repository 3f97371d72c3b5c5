#include "games/go/ladders/ladder.h"

#include <vector>

#include "base/rng.h"
#include "games/go/ladders/ladder_board.h"
#include "games/go/testing.h"

using namespace tengen;

namespace {

GoLadders ladders(const Go& game, const GoState& state) {
  return ladders_of(GoBoard(game.height(), game.width()), state);
}

// Whether these are the caught stones and the moves that start a working ladder.
bool reads(const Go& game, const GoState& state, const std::vector<std::string>& laddered,
           const std::vector<std::string>& moves) {
  GoLadders wanted;
  for (const std::string& name : laddered) wanted.laddered.add(go_action(game, name));
  for (const std::string& name : moves) wanted.working_moves.add(go_action(game, name));
  const GoLadders found = ladders(game, state);
  return found.laddered == wanted.laddered && found.working_moves == wanted.working_moves;
}
bool reads(const std::string& name, const std::string& diagram, uint8_t to_play,
           const std::vector<std::string>& laddered, const std::vector<std::string>& moves) {
  const Go game = go_game(name);
  return reads(game, go_position(game, diagram, to_play), laddered, moves);
}

// A stone with three attacking stones beside it runs from corner to corner, unless a friendly stone
// is in the way; tested with both sides to move, and when it is already in atari.
void check_long_ladders(const std::string& name, const std::string& near, const std::string& far,
                        const std::vector<std::string>& walls, const std::string& works,
                        const std::string& answer) {
  const Go game = go_game(name);
  for (const bool is_broken : {false, true}) {
    GoState state = game.initial_state();
    go_play(game, state, {near, walls[0], is_broken ? far : "pass", walls[1], "pass", walls[2]});
    const auto if_whole = [&](const std::string& point) {
      return is_broken ? std::vector<std::string>{} : std::vector<std::string>{point};
    };
    TENGEN_CHECK(reads(game, state, if_whole(near), {}));
    go_play(game, state, {"pass"});
    TENGEN_CHECK(reads(game, state, if_whole(near), if_whole(works)));
    go_play(game, state, {works});
    TENGEN_CHECK(reads(game, state, if_whole(near), {}));
    go_play(game, state, {answer});
    const GoLadders found = ladders(game, state);
    TENGEN_CHECK(found.laddered.count() == (is_broken ? 0 : 2));
    TENGEN_CHECK(found.working_moves.count() == (is_broken ? 0 : 1));
  }
}

// Whether a stone of a position with 'X' to move is caught.
bool is_caught(const std::string& name, const std::string& diagram, const std::string& stone) {
  const Go game = go_game(name);
  return ladders(game, go_position(game, diagram)).laddered.has(go_action(game, stone));
}

void check_short_ladders() {
  // Along the edge, into the corner; and to a friendly stone.
  TENGEN_CHECK(is_caught("go/5", "..... ..... ..... OO... OX...", "B1"));
  TENGEN_CHECK(!is_caught("go/5", "..... ..... ..... OO.X. OX...", "B1"));
  // The attacking chain is in atari itself, and is captured.
  TENGEN_CHECK(!is_caught("go/5x4", ".... XX.. .OO. OXXO XX.O", "B2"));
  TENGEN_CHECK(is_caught("go/5x4", ".... XX.. OOO. OXXO XX.O", "B2"));
  // Capturing at the last liberty leaves one liberty: a snapback, and the two moves that start it.
  TENGEN_CHECK(is_caught("go/4", ".... OOOO XXXO O.XO", "B2"));
  TENGEN_CHECK(
      reads("go/4", ".... OOOO XXXO ..XO", kGoWhite, {"A2", "B2", "C1", "C2"}, {"A1", "B1"}));
  // Two eyes: either stone would be suicide.
  TENGEN_CHECK(!is_caught("go/3x5", ".X.XO XXXXO OOOO.", "A2"));
}

// The owner may not retake a ko at once, but may after a pass.
void check_ko() {
  const Go game = go_game("go/7");
  GoState state =
      go_position(game, "....... ....... .OOXO.. ..X.XO. .OOXO.. ....... .......", kGoWhite);
  go_play(game, state, {"D4"});
  const int stone = go_action(game, "C4");
  TENGEN_CHECK(ladders(game, state).laddered.has(stone));
  GoState later = state;
  go_play(game, later, {"pass"});
  TENGEN_CHECK(!ladders(game, later).laddered.has(stone));
  // It is closed to one side only.
  state.to_play = kGoWhite;
  TENGEN_CHECK(!ladders(game, state).laddered.has(stone));
}

// Whether two boards have the same chains, with the same heads.
bool are_same(const GoPoint* a, const GoPoint* b, int num_points) {
  for (int i = 0; i < num_points; ++i) {
    if (a[i].colour != b[i].colour || a[i].head != b[i].head) return false;
    if (a[i].colour == kGoEmpty) continue;
    if (a[i].next != b[i].next) return false;
    if (a[i].head == i && (a[i].size != b[i].size || a[i].liberties != b[i].liberties))
      return false;
  }
  return true;
}

// Placed stones match those of the game, and taking them back restores the position.
void check_trials(int size, uint64_t index) {
  const Go game = go_game("go/" + std::to_string(size));
  const GoBoard board(size, size);
  Rng rng(1, 0, index, 0, Purpose::kTest);
  const GoState start = game.initial_state();
  LadderBoard trial(board, start);
  std::vector<GoState> states = {start};
  std::vector<LadderBoard::Change> changes;
  for (int i = 0; i < 40 * game.num_actions(); ++i) {
    if (!changes.empty() && rng.below(5) < 2) {
      states.pop_back();
      trial.take_back(changes.back());
      changes.pop_back();
    } else {
      const auto point = static_cast<uint16_t>(rng.below(static_cast<uint32_t>(size * size)));
      const auto colour = static_cast<uint8_t>(rng.below(2));
      const bool is_empty = trial.points()[point].colour == kGoEmpty;
      if (!is_empty || !trial.may_set(point, colour)) continue;
      changes.push_back(trial.set(point, colour));
      states.push_back(states.back());
      board.set_stone(states.back(), point, colour);
    }
    TENGEN_CHECK(are_same(trial.points(), states.back().points.data(), size * size));
    TENGEN_CHECK(trial.ko_point() == states.back().ko_point);
  }
}

}  // namespace

int main() {
  check_long_ladders("go/9", "D7", "G4", {"C7", "D8", "C6"}, "E7", "D6");
  check_long_ladders("go/19", "D16", "Q4", {"C16", "D17", "C15"}, "E16", "D15");
  check_long_ladders("go/9x13", "D7", "G4", {"C7", "D8", "C6"}, "E7", "D6");
  check_short_ladders();
  check_ko();
  for (uint64_t index = 0; index < 4; ++index) {
    check_trials(3, index);
    check_trials(5, index);
    check_trials(9, index);
  }
  return 0;
}
