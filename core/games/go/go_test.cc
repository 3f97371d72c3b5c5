#include "games/go/go.h"

#include "games/go/testing.h"
#include "games/testing.h"

using namespace tengen;

namespace {

const std::vector<std::string> kKoRules = {"", "/situational", "/simple"};

bool may(const Go& game, const GoState& state, const std::string& move) {
  return game.is_legal(state, go_action(game, move));
}

std::string stones_of(const Go& game, const GoState& state) {
  return go_diagram(game, state.stones);
}

void check_ko() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, ".XO.. XO.O. .XO.. ..... .....");
    go_play(game, state, {"C4"});  // takes B4
    TENGEN_CHECK(stones_of(game, state) == ".XO.. X.XO. .XO.. ..... .....");
    TENGEN_CHECK(!may(game, state, "B4"));
    TENGEN_CHECK(encoded(game, state, 0)[kGoBannedPlane * 25 + 6] == 1.0f);
    // After a threat and its answer it may be taken.
    go_play(game, state, {"A1", "E1", "B4"});
    TENGEN_CHECK(stones_of(game, state) == ".XO.. XO.O. .XO.. ..... O...X");
    TENGEN_CHECK(!may(game, state, "C4"));
    // Where White passes, Black may fill it.
    state = go_position(game, ".XO.. XO.O. .XO.. ..... .....");
    go_play(game, state, {"C4", "pass", "B4"});
  }
}

// One stone goes off, but the stone that took it is not alone: no ko.
void check_no_ko() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, "..... ..... ..... XOO.. O.XO.");
    go_play(game, state, {"B1", "A1"});
    TENGEN_CHECK(stones_of(game, state) == "..... ..... ..... XOO.. O..O.");
    // Here White could not take back in any case: the ko rule has nothing to forbid.
    state = go_position(game, "..... ..... ..... X.... O....");
    go_play(game, state, {"B1"});
    TENGEN_CHECK(!may(game, state, "A1"));
    TENGEN_CHECK(encoded(game, state, 0)[kGoBannedPlane * 25 + 20] == 0.0f);
  }
}

// A stone thrown in is taken, and the chain that took it is taken where the stone was: no ko.
void check_snapback() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, "..OX. OOOX. XXX.. ..... .....");
    go_play(game, state, {"B5", "A5", "B5"});
    TENGEN_CHECK(stones_of(game, state) == ".X.X. ...X. XXX.. ..... .....");
  }
}

// Three kos, each taken and taken back: the sixth move brings back the board, with Black to move
// as before.
void check_triple_ko() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/9x5" + rule);
    GoState state = go_position(game, ".XO.. X.XO. .XO.. .XO.. XO.O. .XO.. .XO.. XO.O. .XO..");
    go_play(game, state, {"C5", "B8", "C2", "B5", "C8"});
    TENGEN_CHECK(may(game, state, "B2") == (rule == "/simple"));
    if (rule != "/simple") continue;
    go_play(game, state, {"B2"});
    TENGEN_CHECK(game.outcome(state) == Outcome::kDraw);
    uint16_t actions[46];
    TENGEN_CHECK(game.legal_actions(state, actions) == 0);
  }
}

// Black sends two stones, White takes them, Black takes one back: the board is as before, but it is
// White's turn.
void check_send_two_return_one() {
  const std::string diagram = "..... ..... ..... XXOOO X.X.O";
  const Go positional = go_game("go/5");
  GoState state = go_position(positional, diagram);
  go_play(positional, state, {"D1", "B1"});
  TENGEN_CHECK(stones_of(positional, state) == "..... ..... ..... XXOOO XO..O");
  TENGEN_CHECK(!may(positional, state, "C1"));

  const Go situational = go_game("go/5/situational");
  state = go_position(situational, diagram);
  go_play(situational, state, {"D1", "B1", "C1", "pass"});
  TENGEN_CHECK(stones_of(situational, state) == diagram);
  TENGEN_CHECK(!may(situational, state, "D1"));

  // Without superko White passes each time, which costs nothing, to the end of the game.
  const Go simple = go_game("go/5/simple/plies=30");
  state = go_position(simple, diagram);
  while (state.ply + 4 <= 30) go_play(simple, state, {"D1", "B1", "C1", "pass"});
  TENGEN_CHECK(state.ply >= 28);
  TENGEN_CHECK(simple.outcome(state) != Outcome::kDraw);
}

void check_suicide() {
  const std::string diagram = "..O.. OO... ..... ..... .....";
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, "X.O.. OO... ..... ..... .....");
    go_play(game, state, {"B5"});
    TENGEN_CHECK(stones_of(game, state) == diagram);
    // A single stone may not.
    go_play(game, state, {"B5"});
    TENGEN_CHECK(!may(game, state, "A5"));

    const Go strict = go_game("go/5" + rule + "/nosuicide");
    TENGEN_CHECK(!may(strict, go_position(strict, "X.O.. OO... ..... ..... ....."), "B5"));

    // A suicide that takes off all that was set since a board brings it back.
    state = go_position(game, diagram);
    go_play(game, state, {"A5", "pass"});
    TENGEN_CHECK(may(game, state, "B5") == (rule != ""));
  }
}

void check_ends_and_scores() {
  // Black has 12 points and White 8, 5 points are neither's.
  const std::string diagram = ".X.O. .X.O. XX.OO .X.O. .X.O.";
  const auto outcome = [&](const std::string& komi) {
    const Go game = go_game("go/5" + komi);
    GoState state = go_position(game, diagram);
    go_play(game, state, {"pass"});
    TENGEN_CHECK(game.outcome(state) == Outcome::kOngoing);
    go_play(game, state, {"pass"});
    TENGEN_CHECK(!may(game, state, "C3") && !may(game, state, "pass"));
    return game.outcome(state);
  };
  const Go game = go_game("go/5/komi=0");
  const GoState state = go_position(game, diagram);
  TENGEN_CHECK(go_diagram(game, game.area(state)) == "XX.OO XX.OO XX.OO XX.OO XX.OO");
  TENGEN_CHECK(game.score_half_points(state) == 0);
  TENGEN_CHECK(outcome("") == Outcome::kSecondWins);
  TENGEN_CHECK(outcome("/komi=0") == Outcome::kDraw);
  TENGEN_CHECK(outcome("/komi=0.5") == Outcome::kSecondWins);
  TENGEN_CHECK(outcome("/komi=-0.5") == Outcome::kFirstWins);

  const Go seki = go_game("go/2x4/komi=0");
  TENGEN_CHECK(go_diagram(seki, seki.area(go_position(seki, "XX.O X.OO"))) == "XX.O X.OO");

  const Go empty = go_game("go/9/komi=0/plies=1");
  GoState first = empty.initial_state();
  go_play(empty, first, {"E5"});
  TENGEN_CHECK(empty.score_half_points(first) == 2 * 81);
  TENGEN_CHECK(empty.outcome(first) == Outcome::kFirstWins);
}

void check_handicap() {
  const Go game = go_game("go/19/handicap=9");
  const GoState state = game.initial_state();
  TENGEN_CHECK(state.to_play == kGoWhite && state.ply == 0);
  for (const char* point : {"D4", "Q16", "D16", "Q4", "D10", "Q10", "K4", "K16", "K10"}) {
    TENGEN_CHECK(state.stones[kGoBlack].has(go_action(game, point)));
  }
  TENGEN_CHECK(state.stones[kGoBlack].count() == 9);
  const Go three = go_game("go/9/handicap=3");
  PointSet points;
  for (const char* point : {"C3", "G7", "C7"}) points.add(go_action(three, point));
  TENGEN_CHECK(three.initial_state().stones[kGoBlack] == points);
  const Go five = go_game("go/13/handicap=5");
  TENGEN_CHECK(five.initial_state().stones[kGoBlack].has(go_action(five, "G7")));
}

}  // namespace

int main() {
  check_ko();
  check_no_ko();
  check_snapback();
  check_triple_ko();
  check_send_two_return_one();
  check_suicide();
  check_ends_and_scores();
  check_handicap();
  for (const std::string name :
       {"go/2", "go/3/simple", "go/5/situational", "go/7x4/simple/nosuicide", "go/9", "go/19"}) {
    for (uint64_t index = 0; index < (name == "go/19" ? 2 : 20); ++index) {
      check_random_game(go_game(name), index);
    }
  }
}
