#pragma once
// Looks for wins by force: moves that each threaten to win at once, so that every reply is forced,
// until the opponent cannot parry all threats. In gomoku this is called VCF, victory by continuous
// fours; it is the simplest threat-space search (Allis, van den Herik and Huntjens 1996).

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>

#include "games/decisive.h"
#include "games/game.h"

namespace tengen {

// The result of near_actions(): as decisive_actions(), two moves deep.
struct Near : Decisive {
  // Whether all legal actions are left. Then they are neither counted nor written.
  bool is_open = false;
};

// A game with alternating players that finds threats fast.
template <class G>
concept HasForcing =
    Game<G> && requires(const G game, const typename G::State& view, uint16_t* actions) {
      { G::kMostActions } -> std::convertible_to<int>;
      { game.near_actions(view, actions) } -> std::same_as<Near>;
      // Writes legal actions, ascending, among them all that threaten to win at once.
      { game.forcing_actions(view, actions) } -> std::same_as<int>;
    };

// The maximum number of parried threats that are tried in a position. A win that needs more is left
// to the search, which finds it a few moves later.
inline constexpr int kMostThreats = 30;

// Returns the first move of a win by force, or -1; counts `num_left` down for each threat that can
// be parried. `near` and its `actions` are the result of near_actions() for `state`, which is not
// terminal, and neither won nor lost.
template <HasForcing G>
int forced_win(const G& game, const typename G::State& state, const Near& near,
               const uint16_t* actions, int& num_left) {
  std::array<uint16_t, G::kMostActions> threats;
  std::array<uint16_t, G::kMostActions> replies;
  const int num_threats = game.forcing_actions(state, threats.data());
  for (int i = 0; i < num_threats; ++i) {
    const uint16_t action = threats[static_cast<size_t>(i)];
    if (!near.is_open && !std::binary_search(actions, actions + near.count, action)) continue;
    typename G::State next = state;
    game.apply(next, action);
    const Near reply = game.near_actions(next, replies.data());
    if (reply.is_lost) return action;
    if (reply.count != 1 || reply.is_won) continue;  // no threat, or the opponent wins
    if (num_left-- <= 0) return -1;
    game.apply(next, replies[0]);
    const Near then = game.near_actions(next, replies.data());
    if (then.is_won) return action;
    if ((then.count == 0 && !then.is_open) || then.is_lost) continue;
    if (forced_win(game, next, then, replies.data(), num_left) >= 0) return action;
  }
  return -1;
}

// Returns near_actions(), or the first move of a win by force.
template <HasForcing G>
Decisive near_or_forced(const G& game, const typename G::State& state, uint16_t* actions) {
  const Near near = game.near_actions(state, actions);
  if ((near.count == 0 && !near.is_open) || near.is_won || near.is_lost) return near;
  int num_left = kMostThreats;
  const int first = forced_win(game, state, near, actions, num_left);
  if (first < 0) {
    if (near.is_open) return {.count = game.legal_actions(state, actions)};
    return near;
  }
  actions[0] = static_cast<uint16_t>(first);
  return {.count = 1, .is_won = true};
}

}  // namespace tengen
