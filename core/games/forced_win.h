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

// A game that finds threats faster if it knows those before the last moves.
template <class G>
concept HasForcingAfter = HasForcing<G> && requires(const G game, const typename G::State& view,
                                                    const uint16_t* before, uint16_t* actions) {
  // near_actions() for a position whose last mover had no move that won at once before that move,
  // and whose side to move has none. Callers ensure this, so is_won is never set.
  { game.near_after(view, actions) } -> std::same_as<Near>;
  // Writes a superset of forcing_actions(), legal and ascending. `before`, an array and its size,
  // is such a superset for the position two moves ago; the next argument is the action that the
  // side to move took there.
  { game.forcing_after(view, before, 0, 0, actions) } -> std::same_as<int>;
};

// Returns the first move of a win by force, or -1; counts `num_left` down for each threat that can
// be parried. `near` and its `actions` are the result of near_actions() for `state`, which is not
// terminal, and neither won nor lost; `threats` contain all forcing_actions().
template <HasForcing G>
int forced_win(const G& game, const typename G::State& state, const Near& near,
               const uint16_t* actions, const uint16_t* threats, int num_threats, int& num_left) {
  std::array<uint16_t, G::kMostActions> replies;
  std::array<uint16_t, G::kMostActions> parries;
  std::array<uint16_t, G::kMostActions> next_threats;
  const auto near_after = [&](const typename G::State& view, uint16_t* out) {
    if constexpr (HasForcingAfter<G>) {
      return game.near_after(view, out);
    } else {
      return game.near_actions(view, out);
    }
  };
  for (int i = 0; i < num_threats; ++i) {
    const uint16_t action = threats[i];
    if (!near.is_open && !std::binary_search(actions, actions + near.count, action)) continue;
    typename G::State next = state;
    game.apply(next, action);
    const Near reply = near_after(next, replies.data());
    if (reply.is_lost) return action;
    if (reply.count != 1 || reply.is_won) continue;  // no threat, or the opponent wins
    if (num_left-- <= 0) return -1;
    game.apply(next, replies[0]);
    const Near then = near_after(next, parries.data());
    if (then.is_won) return action;
    if ((then.count == 0 && !then.is_open) || then.is_lost) continue;
    int num_next;
    if constexpr (HasForcingAfter<G>) {
      num_next = game.forcing_after(next, threats, num_threats, action, next_threats.data());
    } else {
      num_next = game.forcing_actions(next, next_threats.data());
    }
    const int first =
        forced_win(game, next, then, parries.data(), next_threats.data(), num_next, num_left);
    if (first >= 0) return action;
  }
  return -1;
}

// Returns near_actions(), or the first move of a win by force.
template <HasForcing G>
Decisive near_or_forced(const G& game, const typename G::State& state, uint16_t* actions) {
  const Near near = game.near_actions(state, actions);
  if ((near.count == 0 && !near.is_open) || near.is_won || near.is_lost) return near;
  std::array<uint16_t, G::kMostActions> threats;
  const int num_threats = game.forcing_actions(state, threats.data());
  int num_left = kMostThreats;
  const int first = forced_win(game, state, near, actions, threats.data(), num_threats, num_left);
  if (first < 0) {
    if (near.is_open) return {.count = game.legal_actions(state, actions)};
    return near;
  }
  actions[0] = static_cast<uint16_t>(first);
  return {.count = 1, .is_won = true};
}

}  // namespace tengen
