#pragma once
// Openings, so that games of one model differ from the first move: those of a book, or uniform
// random plies, then plies drawn from the bare policy, which lead to positions that are worth
// knowing.
// Source of the second kind: KataGo (lightvector/KataGo), "initGamesWithPolicy".

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
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

// Plays the moves of an opening on `state`. Throws Error for moves that are not of the game, and
// where they end it.
template <Game G>
void play_book_opening(const G& game, typename G::State& state,
                       const std::vector<uint16_t>& moves) {
  for (size_t i = 0; i <= moves.size(); ++i) {
    const bool is_over = game.outcome(state) != Outcome::kOngoing;
    if (is_over || (i < moves.size() && !game.is_legal(state, moves[i]))) {
      throw Error("opening (ply " + std::to_string(i) + ") must be legal in " +
                  std::string(game.name()) + " and go on; give a book of this game");
    }
    if (i < moves.size()) game.apply(state, moves[i]);
  }
}

// How many plies the policy draws: the exponential distribution of this mean, rounded down. It is
// mostly few, and now and then so many that the game begins far from any beaten track.
inline uint32_t num_policy_plies(float mean, Rng& rng) {
  const double drawn = -std::log(rng.uniform_positive()) * mean;
  return static_cast<uint32_t>(std::min(drawn, 65535.0));
}

}  // namespace tengen
