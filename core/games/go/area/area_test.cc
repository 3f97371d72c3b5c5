#include "games/go/area/area.h"

#include <algorithm>
#include <array>

#include "games/go/testing.h"

using namespace tengen;

namespace {

std::string alive(const std::string& name, const std::string& diagram) {
  const Go game = go_game(name);
  return go_diagram(game, game.pass_alive(go_position(game, diagram)));
}

// The same for a game with minigo's planes, and how its board is scored.
std::string minigo_alive(const std::string& name, const std::string& diagram) {
  return alive(name + "/nosuicide/planes=minigo", diagram);
}
std::string minigo_area(const std::string& name, const std::string& diagram) {
  const Go game = go_game(name + "/nosuicide/planes=minigo");
  const GoState state = go_position(game, diagram);
  const GoAreas area = game.area(state);
  const int score = area[kGoBlack].count() - area[kGoWhite].count();
  TENGEN_CHECK(game.score_half_points(state) == 2 * score - 15);
  return go_diagram(game, area);
}

void check_minigo() {
  // Besides two eyes, a region with one empty point and a white stone in its middle, which does not
  // count as a point there; all of it is Black's.
  const std::string large = "XXXXXX. X....XX X.O..X. X....XX XXXXXXX";
  const std::string whole = "XXXXXXX XXXXXXX XXXXXXX XXXXXXX XXXXXXX";
  TENGEN_CHECK(alive("go/5x7/nosuicide", large) == "XXXXXXX X....XX X....XX X....XX XXXXXXX");
  TENGEN_CHECK(minigo_alive("go/5x7", large) == whole && minigo_area("go/5x7", large) == whole);
  // With two points there White could live.
  const std::string larger = "XXXXXXX. X.....XX X.O...X. X.....XX XXXXXXXX";
  TENGEN_CHECK(minigo_alive("go/5x8", larger) == "XXXXXXXX X.....XX X.....XX X.....XX XXXXXXXX");
  TENGEN_CHECK(minigo_area("go/5x8", larger) == "XXXXXXXX X.....XX X.O...XX X.....XX XXXXXXXX");
  // Dead in the corner, but not beside the chain below, which has one eye.
  TENGEN_CHECK(minigo_area("go/4", "XO.O .OOO OOX. .O.O") == "OOOO OOOO OOX. OO.O");
  // The stone at the right fails, and has no liberty in the second eye of the others.
  const std::string eye = ".X.OX XXXX. .....";
  TENGEN_CHECK(alive("go/3x5/nosuicide", eye) == "..... ..... .....");
  TENGEN_CHECK(minigo_alive("go/3x5", eye) == "XX... XXXX. .....");
  TENGEN_CHECK(minigo_area("go/3x5", eye) == "XX.OX XXXXX XXXXX");
  // A game in progress is settled, and one that ended with two passes is won, by the same area.
  const Go game = go_game("go/5x7/nosuicide/planes=minigo");
  GoState state = go_position(game, large);  // White has just passed
  TENGEN_CHECK(game.is_settled(state) && game.score(state) == 27.5f);
  go_play(game, state, {"pass"});
  TENGEN_CHECK(!game.is_settled(state) && game.outcome(state) == Outcome::kFirstWins);
  TENGEN_CHECK(game.score(state) == 27.5f);
  std::array<int8_t, 35> owners;
  game.owners(state, owners.data());
  TENGEN_CHECK(std::count(owners.begin(), owners.end(), 1) == 35);
}

}  // namespace

int main() {
  const std::string none = "..... ..... ..... ..... .....";
  // Two eyes.
  TENGEN_CHECK(alive("go/5", ".X.X. XXXX. ..... .OO.. .....") == "XXXX. XXXX. ..... ..... .....");
  // Two chains that share two eyes.
  TENGEN_CHECK(alive("go/3x5", ".XX.X X.X.. XX...") == "XXX.. XXX.. XX...");
  // One eye; and two eyes, the second of which joins chains that are cut beside it.
  TENGEN_CHECK(alive("go/5", ".XO.. XXO.. OOO.. ..... .....") == none);
  TENGEN_CHECK(alive("go/5", ".X.X. XOXX. OO... ..... .....") == none);
  // Seki: neither is alive unconditionally.
  TENGEN_CHECK(alive("go/2x4", "XX.O X.OO") == ".... ....");
  // A dead stone in a region is not alive, and its point is White's; Black's chain has no eye.
  TENGEN_CHECK(alive("go/5", "O.OX. .OOX. OO.X. XXXX. .....") == "OOO.. OOO.. OO... ..... .....");
  TENGEN_CHECK(alive("go/4", "XO.O .OOO OOX. .O.O") == "OOOO OOOO OO.. OO..");

  // The middle is an eye as long as White cannot clear it by suicide and then refill it in another
  // order that leaves the centre, which is no liberty of Black's, for last.
  const std::string cross = "XXXXX XX.XX X.O.X XX.XX .XXXX";
  TENGEN_CHECK(alive("go/5/nosuicide", cross) == "XXXXX XXXXX XXXXX XXXXX XXXXX");
  TENGEN_CHECK(alive("go/5", cross) == none);
  // Nor is the corner then an eye of the right chain, which touches only one of its points.
  const std::string corner = "O.XX. XX.X. .XX.. .....";
  TENGEN_CHECK(alive("go/4x5/nosuicide", corner) == "XXXX. XXXX. .XX.. .....");
  TENGEN_CHECK(alive("go/4x5", corner) == "..... ..... ..... .....");

  // Besides two eyes, a region with one point in its middle, and one with two points, where White
  // could live.
  TENGEN_CHECK(alive("go/5x6", "XXXXX. X...XX X...X. X...XX XXXXXX") ==
               "XXXXXX XXXXXX XXXXXX XXXXXX XXXXXX");
  const std::string large = "XXXXXX. X....XX X....X. X....XX XXXXXXX";
  TENGEN_CHECK(alive("go/5x7", large) == "XXXXXXX X....XX X....XX X....XX XXXXXXX");
  check_minigo();
  return 0;
}
