// A game on a small board within larger planes equals the game on a board of that size.

#include "games/go/board/layout.h"

#include <string>
#include <vector>

#include "base/rng.h"
#include "games/go/testing.h"
#include "games/testing.h"

using namespace tengen;

namespace {

// Returns the part of the planes within the board. Checks that everything outside is zero.
std::vector<float> cut_out(const std::vector<float>& planes, int frame, int height, int width) {
  std::vector<float> inside;
  for (size_t i = 0; i < planes.size(); ++i) {
    const int cell = static_cast<int>(i) % (frame * frame);
    if (cell / frame < height && cell % frame < width) {
      inside.push_back(planes[i]);
    } else {
      TENGEN_CHECK(planes[i] == 0.0f);
    }
  }
  return inside;
}

// Plays a random game of `name`, both within the planes of go/`frame` and standalone.
void check_variant(const std::string& name, int frame, uint64_t index) {
  const Go small = go_game(name);
  GoRules rules = make_go_rules(frame, frame);
  rules.planes = parse_go_name(name).planes;
  const Go large(rules);
  Rng rng(3, 0, index, 0, Purpose::kTest);
  GoState a = large.initial_state(name);
  GoState b = small.initial_state();
  const GoLayout layout(small.height(), small.width(), frame, frame);
  std::vector<uint16_t> in_large(static_cast<size_t>(large.num_actions()));
  std::vector<uint16_t> in_small(static_cast<size_t>(small.num_actions()));
  for (;;) {
    TENGEN_CHECK(large.outcome(a) == small.outcome(b));
    TENGEN_CHECK(large.key(a) == small.key(b));
    TENGEN_CHECK(large.score_half_points(a) == small.score_half_points(b));
    TENGEN_CHECK(large.to_string(a) == small.to_string(b));
    TENGEN_CHECK(large.to_play(a) == small.to_play(b) && large.ply(a) == small.ply(b));
    for (int symmetry = 0; symmetry < small.num_symmetries(); ++symmetry) {
      TENGEN_CHECK(cut_out(encoded(large, a, symmetry), frame, small.height(), small.width()) ==
                   encoded(small, b, symmetry));
    }
    const int num_legal = large.legal_actions(a, in_large.data());
    TENGEN_CHECK(num_legal == small.legal_actions(b, in_small.data()));
    if (num_legal == 0) return;
    int num_accepted = 0;
    for (int action = -1; action <= large.num_actions(); ++action) {
      num_accepted += large.is_legal(a, action);
    }
    TENGEN_CHECK(num_accepted == num_legal);
    for (int i = 0; i < num_legal; ++i) {
      TENGEN_CHECK(in_large[static_cast<size_t>(i)] ==
                   layout.action_of(in_small[static_cast<size_t>(i)]));
    }
    const auto chosen = static_cast<size_t>(rng.below(static_cast<uint32_t>(num_legal)));
    large.apply(a, in_large[chosen]);
    small.apply(b, in_small[chosen]);
  }
}

// A symmetry transforms a rectangular board together with its square frame, so the planes equal
// those of a game on the transformed board.
void check_turned(int height, int width, int frame, uint64_t index) {
  const Go game = go_game("go/" + std::to_string(frame));
  Rng rng(4, 0, index, 0, Purpose::kTest);
  const auto name = [](int rows, int columns) { return go_name(make_go_rules(rows, columns)); };
  for (int symmetry = 0; symmetry < game.num_symmetries(); ++symmetry) {
    GoState state = game.initial_state(name(height, width));
    GoState turned = game.initial_state(symmetry & 4 ? name(width, height) : name(height, width));
    std::vector<uint16_t> actions(static_cast<size_t>(game.num_actions()));
    for (int ply = 0; ply < 60; ++ply) {
      TENGEN_CHECK(encoded(game, state, symmetry) == encoded(game, turned, 0));
      const int num_legal = game.legal_actions(state, actions.data());
      if (num_legal == 0) break;
      const uint16_t action = actions[rng.below(static_cast<uint32_t>(num_legal))];
      const uint16_t image = game.images(state, symmetry)[action];
      TENGEN_CHECK(game.is_legal(turned, image));
      game.apply(state, action);
      game.apply(turned, image);
    }
  }
}

void check_what_fits() {
  const Go game = go_game("go/9");
  for (const char* name : {"go/10", "go/9x10", "go/7/plies=163", "go/77", "gomoku/9", "go/7x7"}) {
    TENGEN_CHECK(throws([&] { game.initial_state(std::string(name)); }));
  }
  const Go minigo = go_game("go/9/planes=minigo");
  TENGEN_CHECK(throws([&] { minigo.initial_state(std::string("go/7")); }));
  TENGEN_CHECK(throws([&] { game.initial_state(std::string("go/7/planes=minigo")); }));
  TENGEN_CHECK(initial_state_of(game, "").rules == parse_go_name("go/9"));
  TENGEN_CHECK(initial_state_of(game, "go/9/komi=0.5").rules.komi_half_points == 1);
}

}  // namespace

int main() {
  uint64_t index = 0;
  for (const char* name :
       {"go/9", "go/7", "go/5x8", "go/2", "go/9/simple/nosuicide/komi=-3",
        "go/7/situational/handicap=3", "go/8x3/plies=20", "go/5/nosuicide/planes=minigo",
        "go/9/planes=minigo", "go/9/planes=katago"}) {
    for (int i = 0; i < 3; ++i) check_variant(name, 9, index++);
  }
  check_variant("go/13x19", 19, index++);
  check_turned(5, 8, 9, 0);
  check_turned(9, 2, 9, 1);
  check_turned(7, 7, 9, 2);
  check_what_fits();
  return 0;
}
