#pragma once
// What self-play by the search of the MLPerf benchmark minigo plays and records of a search.
// Source: MLPerf training v2.1, minigo.
//
// The first plies are drawn by visits, never a pass; later ones are the most visited action. Once
// the other side has passed some times in a row, points that are pass-alive for either side are
// not played after those plies, and are never part of a target: games between sides that do not
// know when to stop end sooner.

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

// How often each side has passed in a row; a count that has come to `limit` stays.
class PassRuns {
 public:
  explicit PassRuns(int limit) : limit_(limit) {}

  void clear() { counts_ = {}; }
  void add(int player, bool is_pass) {
    int& count = counts_[static_cast<size_t>(player)];
    if (count < limit_) count = is_pass ? count + 1 : 0;
  }
  // Whether the side to play keeps off pass-alive points.
  bool restricts(int to_play) const { return counts_[static_cast<size_t>(1 - to_play)] >= limit_; }

 private:
  int limit_;
  std::array<int, 2> counts_{};
};

// The pass-alive points of one position at a time.
template <Game G>
class PassAlivePoints {
 public:
  explicit PassAlivePoints(const G& game)
      : cells_(static_cast<size_t>(game.height()) * static_cast<size_t>(game.width())) {}

  // Takes those of `state`, or none where they do not count or the game has none.
  void read(const G& game, const typename G::State& state, bool counts) {
    counts_ = counts && HasPassAlive<G>;
    if constexpr (HasPassAlive<G>) {
      if (counts) game.pass_alive_cells(state, cells_.data());
    }
  }
  // Whether the action is to play on one. A pass is not.
  bool has(int action) const {
    const auto place = static_cast<size_t>(action);
    return counts_ && place < cells_.size() && cells_[place] != 0;
  }

 private:
  std::vector<uint8_t> cells_;
  bool counts_ = false;
};

// The last action of a game that has a pass; no action of any other.
template <Game G>
int pass_of(const G& game) {
  return has_pass(game) ? game.num_actions() - 1 : -1;
}

// The action of the most visits that is not pass-alive, and a pass where there is none.
template <Game G>
int best_allowed(const G& game, const MinigoSearch<G>& search, const SearchResult& result,
                 const PassAlivePoints<G>& alive) {
  const ActionResult* best =
      search.most_visited(result, [&](int action) { return alive.has(action); });
  return best == nullptr ? pass_of(game) : best->action;
}

// A point drawn by visits^exponent. Where no point has a visit a pass, if the search might pass,
// else the most visited action.
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

// `policy`, the search's target, becomes that of a target which is not pruned.
inline void take_visits(SearchResult& result) {
  for (ActionResult& a : result.actions) a.policy = static_cast<float>(a.visits);
}

// `policy`, the search's target, becomes what is recorded: to the power of the draws where the ply
// is drawn, nothing on pass-alive points, and where nothing is left all on a pass.
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
  // A game without a pass has no other way but what its search would play.
  const int only = has_pass(game) ? pass_of(game) : result.best_action;
  for (ActionResult& a : result.actions) a.policy = a.action == only ? 1.0f : 0.0f;
}

// The value of a root below which its side resigns: less its bound, drawn once a game evenly from
// resign_from, which is out of it, to 1. A bound of 1 is never passed.
inline float resignation_value(const SelfplaySettings& settings, Rng rng) {
  const double from = settings.resign_from;
  return static_cast<float>(-(from + (1.0 - from) * rng.uniform_positive()));
}

}  // namespace tengen
