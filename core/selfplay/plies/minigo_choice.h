#pragma once
// Chooses moves and policy targets in self-play with the search of the MLPerf benchmark minigo.
// Source: MLPerf training v2.1, minigo.
//
// In the first plies the move is sampled from the visits, and is never a pass; later it is the most
// visited action. After the opponent has passed several times in a row, a side no longer plays on
// pass-alive points, except in the first plies, and policy targets exclude these points. This
// shortens games between players that do not know when to stop.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "games/game.h"
#include "search/minigo/minigo_search.h"
#include "search/result.h"
#include "selfplay/settings.h"

namespace tengen {

// The number of consecutive passes of each side; a count that reaches `limit` stays at `limit`.
class PassRuns {
 public:
  explicit PassRuns(int limit) : limit_(limit) {}

  void clear() { counts_ = {}; }
  void add(int player, bool is_pass) {
    int& count = counts_[static_cast<size_t>(player)];
    if (count < limit_) count = is_pass ? count + 1 : 0;
  }
  // Whether the side to play must avoid pass-alive points.
  bool restricts(int to_play) const { return counts_[static_cast<size_t>(1 - to_play)] >= limit_; }

 private:
  int limit_;
  std::array<int, 2> counts_{};
};

// The pass-alive points of one position.
template <Game G>
class PassAlivePoints {
 public:
  explicit PassAlivePoints(const G& game)
      : cells_(static_cast<size_t>(game.height()) * static_cast<size_t>(game.width())) {}

  // Reads the pass-alive points of `state`, or none if `counts` is false or the game has none.
  void read(const G& game, const typename G::State& state, bool counts) {
    counts_ = counts && HasPassAlive<G>;
    if constexpr (HasPassAlive<G>) {
      if (counts) game.pass_alive_cells(state, cells_.data());
    }
  }
  // Whether the action is a move on a pass-alive point. False for a pass.
  bool has(int action) const {
    const auto place = static_cast<size_t>(action);
    return counts_ && place < cells_.size() && cells_[place] != 0;
  }

 private:
  std::vector<uint8_t> cells_;
  bool counts_ = false;
};

// Returns the pass, which is the last action; -1 in a game without a pass.
template <Game G>
int pass_of(const G& game) {
  return has_pass(game) ? game.num_actions() - 1 : -1;
}

// Returns the most visited action that is not on a pass-alive point, or a pass if there is none.
template <Game G>
int best_allowed(const G& game, const MinigoSearch<G>& search, const SearchResult& result,
                 const PassAlivePoints<G>& alive) {
  const ActionResult* best =
      search.most_visited(result, [&](int action) { return alive.has(action); });
  return best == nullptr ? pass_of(game) : best->action;
}

// Samples a point with probability proportional to visits^exponent. If no point has a visit,
// returns a pass if the search may pass, otherwise the most visited action.
template <Game G>
int draw_point(const G& game, const MinigoSearch<G>& search, const SearchResult& result,
               double exponent, Rng& rng) {
  const int pass = pass_of(game);
  const auto weight = [&](const ActionResult& a) {
    return a.visits == 0 || a.action == pass ? 0.0 : std::pow(a.visits, exponent);
  };
  double total = 0.0;
  for (const ActionResult& a : result.actions) total += weight(a);
  if (total == 0.0) return has_pass(game) && search.may_pass() ? pass : result.best_action;
  double left = rng.uniform() * total;
  int last = -1;
  for (const ActionResult& a : result.actions) {
    if (weight(a) == 0.0) continue;
    last = a.action;
    left -= weight(a);
    if (left < 0.0) break;
  }
  return last;
}

// Sets `policy`, the search's policy target, to the target without pruning.
inline void take_visits(SearchResult& result) {
  for (ActionResult& a : result.actions) a.policy = static_cast<float>(a.visits);
}

// Converts `policy`, the search's policy target, to the recorded target: drops pass-alive points,
// raises the rest to `exponent` if the move is sampled, and puts all weight on the pass if nothing
// remains.
template <Game G>
void make_target(const G& game, const PassAlivePoints<G>& alive, bool is_drawn, double exponent,
                 SearchResult& result) {
  double total = 0.0;
  for (ActionResult& a : result.actions) {
    if (a.visits == 0 || alive.has(a.action)) a.policy = 0.0f;
    if (is_drawn && a.policy > 0.0f) a.policy = static_cast<float>(std::pow(a.policy, exponent));
    total += a.policy;
  }
  if (total > 0.0) {
    for (ActionResult& a : result.actions) a.policy = static_cast<float>(a.policy / total);
    return;
  }
  // In a game without a pass, all weight goes to the move that the search would play.
  const int only = has_pass(game) ? pass_of(game) : result.best_action;
  for (ActionResult& a : result.actions) a.policy = a.action == only ? 1.0f : 0.0f;
}

// Returns the root value below which a side resigns: minus a threshold sampled uniformly for the
// game from (resign_from, 1]. A threshold of 1 is never reached.
inline float resignation_value(const SelfplaySettings& settings, Rng rng) {
  const double from = settings.resign_from;
  return static_cast<float>(-(from + (1.0 - from) * rng.uniform_positive()));
}

}  // namespace tengen
