#pragma once
// Validates search requests; shared by all searches.

#include <string>

#include "base/error.h"
#include "games/game.h"
#include "search/settings.h"

namespace tengen {

// The maximum number of simulations. Edges count visits in float32, exact up to here.
inline constexpr int kMaxSimulations = 1 << 24;

// Throws Error if the number of simulations is out of range.
inline void check_num_simulations(int num_simulations) {
  if (num_simulations < 0 || num_simulations > kMaxSimulations) {
    throw Error("num_simulations (" + std::to_string(num_simulations) + ") must be 0 to " +
                std::to_string(kMaxSimulations) + "; lower it");
  }
}

// Throws Error if the game has ended at `root` or the number of simulations is out of range.
template <Game G>
void check_request(const G& game, const typename G::State& root, const SearchRequest& request) {
  if (game.outcome(root) != Outcome::kOngoing) {
    throw Error("root (after " + std::to_string(game.ply(root)) +
                " plies) must not be finished; search a position with legal moves");
  }
  check_num_simulations(request.num_simulations);
}

}  // namespace tengen
