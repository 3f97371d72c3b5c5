#include "games/go/ladders/katago_ladder.h"

#include <vector>

#include "base/rng.h"
#include "games/go/testing.h"

using namespace tengen;

namespace {

GoLadders ladders(const Go& game, const GoState& state) {
  return katago_ladders_of(GoBoard(game.height(), game.width()), state);
}
GoLadders own_ladders(const Go& game, const GoState& state) {
  return ladders_of(GoBoard(game.height(), game.width()), state);
}

// A stone with three attackers beside it runs into the corner, unless a friend is in the way.
void check_a_long_ladder() {
  const Go game = go_game("go/9");
  for (const bool is_broken : {false, true}) {
    GoState state = game.initial_state();
    go_play(game, state, {"D4", "D3", is_broken ? "G7" : "pass", "C4", "pass", "E3", "pass"});
    const GoLadders found = ladders(game, state);
    TENGEN_CHECK(found.laddered.has(go_action(game, "D4")) == !is_broken);
    TENGEN_CHECK(found.working_moves.count() == (is_broken ? 0 : 1));
    TENGEN_CHECK(found.laddered == own_ladders(game, state).laddered);
  }
}

// The ladders of an earlier board equal those read at that time. They differ from those of
// games/go/ladders/ladder.h occasionally, because of kos.
void check_random_games(const std::string& name, int* num_different, int* num_laddered) {
  const Go game = go_game(name);
  for (uint64_t index = 0; index < 40; ++index) {
    Rng rng(7, 0, index, 0, Purpose::kTest);
    GoState state = game.initial_state();
    while (game.outcome(state) == Outcome::kOngoing) {
      const GoLadders found = ladders(game, state);
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
  check_a_long_ladder();
  int num_different = 0, num_laddered = 0;
  for (const std::string name : {"go/4", "go/5/simple", "go/5x7/nosuicide"}) {
    check_random_games(name, &num_different, &num_laddered);
  }
  // Kos are rare, and the only difference between the two.
  TENGEN_CHECK(num_laddered > 1000 && num_different > 0 && num_different < num_laddered / 20);
  return 0;
}
