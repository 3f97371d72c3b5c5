#include "games/go/area.h"

#include "games/go/testing.h"

using namespace tengen;

namespace {

std::string alive(const std::string& name, const std::string& diagram) {
  const Go game = go_game(name);
  return go_diagram(game, game.pass_alive(go_position(game, diagram)));
}

}  // namespace

int main() {
  const std::string none = "..... ..... ..... ..... .....";
  // Two eyes.
  TENGEN_CHECK(alive("go/5", ".X.X. XXXX. ..... .OO.. .....") == "XXXX. XXXX. ..... ..... .....");
  // Two chains that share two eyes.
  TENGEN_CHECK(alive("go/3x5", ".XX.X X.X.. XX...") == "XXX.. XXX.. XX...");
  // One eye; and two of which the second joins chains that are cut beside it.
  TENGEN_CHECK(alive("go/5", ".XO.. XXO.. OOO.. ..... .....") == none);
  TENGEN_CHECK(alive("go/5", ".X.X. XOXX. OO... ..... .....") == none);
  // Seki: neither is safe by itself.
  TENGEN_CHECK(alive("go/2x4", "XX.O X.OO") == ".... ....");
  // A dead stone in a region is no life, and its point is White's; Black's chain has no eye.
  TENGEN_CHECK(alive("go/5", "O.OX. .OOX. OO.X. XXXX. .....") == "OOO.. OOO.. OO... ..... .....");
  TENGEN_CHECK(alive("go/4", "XO.O .OOO OOX. .O.O") == "OOOO OOOO OO.. OO..");

  // The middle is an eye while White cannot clear it by a suicide, and then fill it in another
  // order, which leaves its centre for last: no liberty of Black's.
  const std::string cross = "XXXXX XX.XX X.O.X XX.XX .XXXX";
  TENGEN_CHECK(alive("go/5/nosuicide", cross) == "XXXXX XXXXX XXXXX XXXXX XXXXX");
  TENGEN_CHECK(alive("go/5", cross) == none);
  // Nor is the corner an eye of the right chain then, beside which one of its two points is not.
  const std::string corner = "O.XX. XX.X. .XX.. .....";
  TENGEN_CHECK(alive("go/4x5/nosuicide", corner) == "XXXX. XXXX. .XX.. .....");
  TENGEN_CHECK(alive("go/4x5", corner) == "..... ..... ..... .....");

  // Besides two eyes, a region with one point in its middle, and with two, where White could live.
  TENGEN_CHECK(alive("go/5x6", "XXXXX. X...XX X...X. X...XX XXXXXX") ==
               "XXXXXX XXXXXX XXXXXX XXXXXX XXXXXX");
  const std::string large = "XXXXXX. X....XX X....X. X....XX XXXXXXX";
  TENGEN_CHECK(alive("go/5x7", large) == "XXXXXXX X....XX X....XX X....XX XXXXXXX");
}
