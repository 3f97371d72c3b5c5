// Boards for reading ladders. tests/unit/games compares ladders with a slow implementation.

#include "games/go/ladders/ladder.h"

#include <vector>

#include "base/rng.h"
#include "games/go/ladders/katago_ladder.h"
#include "games/go/ladders/ladder_board.h"
#include "games/go/testing.h"

using namespace tengen;

namespace {

// Returns whether two boards have the same chains with the same heads.
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

// Placing stones gives the same board as in the game, and taking them back restores the position.
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

GoLadders katago_ladders(const Go& game, const GoState& state) {
  return katago_ladders_of(GoBoard(game.height(), game.width()), state);
}
GoLadders own_ladders(const Go& game, const GoState& state) {
  return ladders_of(GoBoard(game.height(), game.width()), state);
}

// The ladders of an earlier board equal those that were read at the time. Because of kos, they
// occasionally differ from the ladders of games/go/ladders/ladder.h.
void check_random_games(const std::string& name, int* num_different, int* num_laddered) {
  const Go game = go_game(name);
  for (uint64_t index = 0; index < 40; ++index) {
    Rng rng(7, 0, index, 0, Purpose::kTest);
    GoState state = game.initial_state();
    while (game.outcome(state) == Outcome::kOngoing) {
      const GoLadders found = katago_ladders(game, state);
      const GoEarlierBoard board = {state.stones, state.key, state.ko_point};
      TENGEN_CHECK(katago_laddered(GoBoard(game.height(), game.width()), board) == found.laddered);
      TENGEN_CHECK((found.working_moves & (state.stones[0] | state.stones[1])) == PointSet());
      *num_laddered += found.laddered.count();
      *num_different += !(found.laddered == own_ladders(game, state).laddered);
      uint16_t actions[kGoMaxPoints + 1];
      const int count = game.legal_actions(state, actions);
      game.apply(state, actions[rng.below(static_cast<uint32_t>(count))]);
    }
  }
}

}  // namespace

int main() {
  for (uint64_t index = 0; index < 4; ++index) {
    check_trials(3, index);
    check_trials(5, index);
    check_trials(9, index);
  }
  int num_different = 0, num_laddered = 0;
  for (const std::string name : {"go/4", "go/5/simple", "go/5x7/nosuicide"}) {
    check_random_games(name, &num_different, &num_laddered);
  }
  // The two readers differ only because of kos, which are rare.
  TENGEN_CHECK(num_laddered > 1000 && num_different > 0 && num_different < num_laddered / 20);
  return 0;
}
