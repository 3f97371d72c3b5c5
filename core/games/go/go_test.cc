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
    go_play(game, state, {"C4"});  // captures B4
    TENGEN_CHECK(stones_of(game, state) == ".XO.. X.XO. .XO.. ..... .....");
    TENGEN_CHECK(!may(game, state, "B4"));
    TENGEN_CHECK(encoded(game, state, 0)[kGoBannedPlane * 25 + 6] == 1.0f);
    // After a threat and its answer the recapture is legal.
    go_play(game, state, {"A1", "E1", "B4"});
    TENGEN_CHECK(stones_of(game, state) == ".XO.. XO.O. .XO.. ..... O...X");
    TENGEN_CHECK(!may(game, state, "C4"));
    // If White passes, Black may fill the ko.
    state = go_position(game, ".XO.. XO.O. .XO.. ..... .....");
    go_play(game, state, {"C4", "pass", "B4"});
  }
}

// One stone is captured, but the capturing stone is not alone: no ko.
void check_no_ko() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, "..... ..... ..... XOO.. O.XO.");
    go_play(game, state, {"B1", "A1"});
    TENGEN_CHECK(stones_of(game, state) == "..... ..... ..... XOO.. O..O.");
    // White could not recapture in any case, so the ko rule forbids nothing.
    state = go_position(game, "..... ..... ..... X.... O....");
    go_play(game, state, {"B1"});
    TENGEN_CHECK(!may(game, state, "A1"));
    TENGEN_CHECK(encoded(game, state, 0)[kGoBannedPlane * 25 + 20] == 0.0f);
  }
}

// A throw-in stone is captured, and then the capturing chain is captured at the same point: no ko.
void check_snapback() {
  for (const std::string& rule : kKoRules) {
    const Go game = go_game("go/5" + rule);
    GoState state = go_position(game, "..OX. OOOX. XXX.. ..... .....");
    go_play(game, state, {"B5", "A5", "B5"});
    TENGEN_CHECK(stones_of(game, state) == ".X.X. ...X. XXX.. ..... .....");
  }
}

// Three kos, each taken and retaken: the sixth move recreates the board and Black's turn.
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

// Black sends two stones, White captures them, Black recaptures one: the same board as before, but
// with White to move.
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

  // Without superko White passes each time, at no cost, until the end of the game.
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
    // A single stone may not commit suicide.
    go_play(game, state, {"B5"});
    TENGEN_CHECK(!may(game, state, "A5"));

    const Go strict = go_game("go/5" + rule + "/nosuicide");
    TENGEN_CHECK(!may(strict, go_position(strict, "X.O.. OO... ..... ..... ....."), "B5"));

    // A suicide that removes all stones played since a board recreates it.
    state = go_position(game, diagram);
    go_play(game, state, {"A5", "pass"});
    TENGEN_CHECK(may(game, state, "B5") == (rule != ""));
  }
}

void check_ends_and_scores() {
  // Black has 12 points and White 8; 5 points belong to neither.
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

// The points of a plane, "X" for 1.
std::string plane_of(const Go& game, const GoState& state, int plane) {
  const std::vector<float> planes = encoded(game, state, 0);
  const int num_cells = game.num_actions() - 1;
  GoAreas shown;
  for (int cell = 0; cell < num_cells; ++cell) {
    const float value = planes[static_cast<size_t>(plane * num_cells + cell)];
    TENGEN_CHECK(value == 0.0f || value == 1.0f);
    if (value == 1.0f) shown[kGoBlack].add(cell);
  }
  return go_diagram(game, shown);
}

void check_minigo_planes() {
  const std::string name = "go/5/nosuicide/planes=minigo";
  const std::string none = "..... ..... ..... ..... .....";
  const std::string all = "XXXXX XXXXX XXXXX XXXXX XXXXX";
  const Go game = go_game(name);
  TENGEN_CHECK(game.num_planes() == 14 && game.name() == name);
  GoState state = game.initial_state();
  const auto plane = [&](int number) { return plane_of(game, state, number); };
  TENGEN_CHECK(plane(0) == all && plane(kMinigoBlackPlane) == all);
  for (int number = 1; number < 14; ++number) {
    TENGEN_CHECK(number == kMinigoBlackPlane || plane(number) == none);
  }
  // A pass is a separate ply, and the earlier stones are shown relative to the side to move.
  go_play(game, state, {"A1", "C3", "pass"});
  TENGEN_CHECK(plane(kMinigoBlackPlane) == none);
  const std::string a1 = "..... ..... ..... ..... X....";
  const std::string c3 = "..... ..... ..X.. ..... .....";
  const std::string wanted[] = {c3, a1, c3, a1, none, a1, none, none};
  for (int i = 0; i < 8; ++i) TENGEN_CHECK(plane(1 + i) == wanted[i]);
  go_play(game, state, {"B1"});
  TENGEN_CHECK(plane(kMinigoLibertyPlane) == a1 && plane(kMinigoCapturePlane) == none);
  go_play(game, state, {"D5"});
  TENGEN_CHECK(plane(kMinigoCapturePlane) == "..... ..... ..... X.... .....");
  TENGEN_CHECK(plane(kMinigoLibertyPlane + 1) == "..... ..... ..... ..... .X...");
  TENGEN_CHECK(plane(kMinigoLibertyPlane + 2) == "...X. ..... ..X.. ..... .....");
  go_play(game, state, {"A2"});
  // The captured stone is still on the earlier boards.
  const std::string after[] = {"...X. ..... ..... ..... .....",
                               "..... ..... ..X.. X.... .X...",
                               "...X. ..... ..... ..... X....",
                               "..... ..... ..X.. ..... .X...",
                               a1,
                               "..... ..... ..X.. ..... .X...",
                               a1,
                               c3};
  for (int i = 0; i < 8; ++i) TENGEN_CHECK(plane(1 + i) == after[i]);
}

// Capturing moves, except where the ko rule forbids them.
void check_what_minigo_may_capture() {
  const Go game = go_game("go/5/nosuicide/planes=minigo");
  GoState state = go_position(game, "..... ..... ..... XXOOO X.X.O");
  const auto captures = [&] { return plane_of(game, state, kMinigoCapturePlane); };
  go_play(game, state, {"D1"});
  TENGEN_CHECK(captures() == "..... ..... ..... ..... .X...");
  go_play(game, state, {"B1"});
  // C1 would capture B1 and recreate a board; only superko forbids it.
  TENGEN_CHECK(captures() == "..... ..... ..... ..... ....." && !may(game, state, "C1"));
  state = go_position(game, ".XO.. XO.O. .XO.. ..... .....");
  go_play(game, state, {"C4"});
  TENGEN_CHECK(captures() == "..... ..... ..... ..... ....." && !may(game, state, "B4"));
  go_play(game, state, {"A1", "E1"});
  TENGEN_CHECK(captures() == "..... .X... ..... ..... .....");
  // If the game is over nothing is legal.
  go_play(game, state, {"pass", "pass"});
  TENGEN_CHECK(captures() == "..... ..... ..... ..... .....");
}

// The key covers the last four boards.
void check_minigo_keys() {
  const auto key_after = [](const std::string& name, const std::vector<std::string>& moves) {
    const Go game = go_game(name);
    GoState state = game.initial_state();
    go_play(game, state, moves);
    const GoState copy = state;
    TENGEN_CHECK(game.key(copy) == game.key(state));
    TENGEN_CHECK(encoded(game, copy, 0) == encoded(game, state, 0));
    return game.key(state);
  };
  const std::string name = "go/5/planes=minigo";
  const Key128 key = key_after(name, {"A1", "E5", "C3", "D1", "E2", "A5"});
  TENGEN_CHECK(!(key == key_after(name, {"A1", "E5", "C3", "A5", "E2", "D1"})));
  // Boards before the last four are not shown.
  TENGEN_CHECK(key == key_after(name, {"C3", "E5", "A1", "D1", "E2", "A5"}));
  TENGEN_CHECK(!(key_after("go/5", {"A1", "E5", "C3", "D1", "E2", "A5"}) ==
                 key_after("go/5", {"C3", "E5", "A1", "D1", "E2", "A5"})));
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
  check_minigo_planes();
  check_what_minigo_may_capture();
  check_minigo_keys();
  for (const std::string name :
       {"go/2", "go/3/simple", "go/5/situational", "go/7x4/simple/nosuicide", "go/9", "go/19",
        "go/5/nosuicide/planes=minigo", "go/4x6/planes=minigo", "go/4x6/planes=katago",
        "go/5/simple/planes=katago"}) {
    for (uint64_t index = 0; index < (name == "go/19" ? 2 : 20); ++index) {
      check_random_game(go_game(name), index);
    }
  }
  return 0;
}
