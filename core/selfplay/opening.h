#pragma once
// Random openings, so that games of one model differ from the first move.

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "games/game.h"

namespace tengen {

// Plays up to `num_plies` uniform random moves on `state`, none of which ends the game (it stops
// before one that would), and appends them to `moves`. `legal` has room for every action.
template <Game G>
void play_opening(const G& game, typename G::State& state, uint32_t num_plies, Rng& rng,
                  uint16_t* legal, std::vector<uint16_t>& moves) {
  for (uint32_t i = 0; i < num_plies; ++i) {
    const int n = game.legal_actions(state, legal);
    const uint16_t action = legal[rng.below(static_cast<uint32_t>(n))];
    typename G::State next = state;
    game.apply(next, action);
    if (game.outcome(next) != Outcome::kOngoing) return;
    state = next;
    moves.push_back(action);
  }
}

}  // namespace tengen
