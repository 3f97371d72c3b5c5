#pragma once
// Counts move sequences, to check the rules against published counts.

#include <cstdint>
#include <vector>

#include "games/game.h"

namespace tengen {

// Returns the number of move sequences of exactly `depth` plies from `state`.
template <Game G>
uint64_t perft(const G& game, const typename G::State& state, int depth) {
  if (depth == 0) return 1;
  std::vector<uint16_t> actions(static_cast<size_t>(game.num_actions()));
  const int num_legal = game.legal_actions(state, actions.data());
  if (depth == 1) return static_cast<uint64_t>(num_legal);
  uint64_t count = 0;
  for (int i = 0; i < num_legal; ++i) {
    typename G::State child = state;
    game.apply(child, actions[static_cast<size_t>(i)]);
    count += perft(game, child, depth - 1);
  }
  return count;
}

}  // namespace tengen
