#pragma once
// What the rules decide, whatever a network says: moves that win at once, moves that let the
// opponent win at once, and in some games moves that win by force.

#include <array>
#include <concepts>
#include <cstdint>

#include "games/game.h"

namespace tengen {

// The result of decisive_actions(), for the side to play.
struct Decisive {
  int count = 0;         // number of actions written
  bool is_won = false;   // each action written wins, at once or by force
  bool is_lost = false;  // the opponent can win at once after any action
};

// A game that finds the decisive moves of a position fast enough for every node of a search.
template <class G>
concept HasDecisive =
    Game<G> && requires(const G game, const typename G::State& view, uint16_t* actions) {
      // Writes legal actions that include a best one, ascending: those that win at once, or else
      // one that wins by force if the game looks for it, or else those after which the opponent
      // cannot win at once, or else any, at least one.
      { game.decisive_actions(view, actions) } -> std::same_as<Decisive>;
    };

// Whether `action` ends the game with a win for the side that plays it.
template <Game G>
bool wins_at_once(const G& game, typename G::State state, int action) {
  const int player = game.to_play(state);
  game.apply(state, action);
  return game.outcome(state) == (player == 0 ? Outcome::kFirstWins : Outcome::kSecondWins);
}

// Finds the decisive actions by playing each action and each reply; if the side to play has lost,
// all legal actions. For games with few actions, and for tests. Preconditions: kMost >= the game's
// number of actions, and the players alternate.
template <int kMost, Game G>
Decisive find_decisive(const G& game, const typename G::State& state, uint16_t* actions) {
  const int num_legal = game.legal_actions(state, actions);
  Decisive found;
  for (int i = 0; i < num_legal; ++i) {
    if (wins_at_once(game, state, actions[i])) actions[found.count++] = actions[i];
  }
  if (found.count > 0) {
    found.is_won = true;
    return found;
  }
  const auto loses = [&](int action) {
    typename G::State next = state;
    game.apply(next, action);
    std::array<uint16_t, kMost> replies;
    const int num_replies = game.legal_actions(next, replies.data());
    for (int i = 0; i < num_replies; ++i) {
      if (wins_at_once(game, next, replies[static_cast<size_t>(i)])) return true;
    }
    return false;
  };
  for (int i = 0; i < num_legal; ++i) {
    if (!loses(actions[i])) actions[found.count++] = actions[i];
  }
  if (found.count == 0 && num_legal > 0) {
    return {.count = game.legal_actions(state, actions), .is_lost = true};
  }
  return found;
}

}  // namespace tengen
