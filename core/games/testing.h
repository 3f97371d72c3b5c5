#pragma once
// Test helpers that check the properties of a Game in random playouts.

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "games/game.h"

namespace tengen {

// Returns the planes of `state` under `symmetry`.
template <Game G>
std::vector<float> encoded(const G& game, const typename G::State& state, int symmetry) {
  std::vector<float> planes(static_cast<size_t>(game.num_planes() * game.height() * game.width()),
                            -1.0f);
  game.encode(state, symmetry, planes.data());
  return planes;
}

// Plays one random game and checks that the legal actions are ascending and agree with is_legal(),
// that the ply increases and the players alternate, that a transformed game has the transformed
// planes, and that every move changes the key.
template <Game G>
void check_random_game(const G& game, uint64_t index) {
  Rng rng(1, 0, index, 0, Purpose::kTest);
  const int symmetry = static_cast<int>(rng.below(static_cast<uint32_t>(game.num_symmetries())));
  typename G::State state = game.initial_state();
  typename G::State turned = game.initial_state();
  std::vector<uint16_t> actions(static_cast<size_t>(game.num_actions()) + 1, 0xfefe);
  for (int ply = 0;; ++ply) {
    TENGEN_CHECK(game.ply(state) == ply && ply <= game.max_plies());
    TENGEN_CHECK(game.to_play(state) == ply % 2);
    TENGEN_CHECK(game.outcome(state) == game.outcome(turned));
    TENGEN_CHECK(encoded(game, state, symmetry) == encoded(game, turned, 0));
    const int num_legal = game.legal_actions(state, actions.data());
    TENGEN_CHECK(actions.back() == 0xfefe);  // nothing is written past num_actions
    TENGEN_CHECK((num_legal == 0) == (game.outcome(state) != Outcome::kOngoing));
    TENGEN_CHECK(std::is_sorted(actions.begin(), actions.begin() + num_legal));
    int num_accepted = 0;
    for (int action = -1; action <= game.num_actions(); ++action) {
      num_accepted += game.is_legal(state, action);
    }
    TENGEN_CHECK(num_accepted == num_legal);
    if (num_legal == 0) return;
    const int action = actions[rng.below(static_cast<uint32_t>(num_legal))];
    TENGEN_CHECK(game.is_legal(state, action));
    const Key128 before = game.key(state);
    game.apply(state, action);
    game.apply(turned, game.images(turned, symmetry)[action]);
    TENGEN_CHECK(!(game.key(state) == before));
  }
}

}  // namespace tengen
