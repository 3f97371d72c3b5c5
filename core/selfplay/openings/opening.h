#pragma once
// Openings, which make the games of one model differ from the first move: openings from a book, or
// uniformly random plies followed by plies sampled from the network's policy, which lead to
// positions worth learning. Source of the policy plies: KataGo (lightvector/KataGo),
// "initGamesWithPolicy".

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "games/game.h"

namespace tengen {

// Plays up to `num_plies` uniformly random moves on `state` and appends them to `moves`. Stops
// before a move that would end the game. `legal` needs space for every action.
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

// Plays the moves of an opening on `state`. Throws Error if a move is illegal or ends the game.
template <Game G>
void play_book_opening(const G& game, typename G::State& state,
                       const std::vector<uint16_t>& moves) {
  play_moves(game, state, moves, "opening");
  check(game.outcome(state) == Outcome::kOngoing, "opening", moves.size(),
        "must not end the game; shorten it");
}

// Samples the number of policy plies from an exponential distribution with this mean, rounded down.
// The number is usually small, and occasionally large enough to reach unusual positions.
inline uint32_t num_policy_plies(float mean, Rng& rng) {
  const double drawn = -std::log(rng.uniform_positive()) * mean;
  return static_cast<uint32_t>(std::min(drawn, 65535.0));
}

}  // namespace tengen
