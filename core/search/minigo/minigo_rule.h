#pragma once
// The rule of the MLPerf benchmark minigo: edge selection, and the policy target and move at the
// root. minigo_search.h implements the search. Source: MLPerf training v2.1, minigo; its
// exploration formula is AlphaZero's (Silver et al. 2018, supplement), the factor 2 is minigo's,
// the pruned target is from Wu 2019, "Accelerating self-play learning in Go", section 3.2.
//
// The value of an edge is Q = W / (1 + N). W starts as the node's own evaluation minus a penalty,
// which counts as one visit. Edges::value_sum is W.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "search/result.h"
#include "search/selection/puct.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// An action without an edge: its index among the legal actions, and its prior.
struct NewEdge {
  static constexpr int kNoPlace = -1;
  int place = kNoPlace;
  float prior = 0.0f;
};

class MinigoRule {
 public:
  explicit MinigoRule(const SearchSettings& settings) : settings_(settings) {
    descent_scale_.reserve(kTableSize);
    for (uint32_t n = 0; n < kTableSize; ++n) descent_scale_.push_back(compute_descent_scale(n));
  }

  // The initial W of each edge of an evaluated node.
  float first_value(const Node& node) const {
    return std::clamp(node.value_to_play - settings_.minigo_value_penalty, -1.0f, 1.0f);
  }

  // Returns the index of the edge to descend, or kNewEdge for `next`, the action with the highest
  // prior among those without an edge, which all have the same Q. Ties go to the lowest action.
  // Precondition: there is an edge or a `next`.
  int select(const Tree& tree, const Node& node, const NewEdge& next) const {
    const float scale =
        node.visits < kTableSize ? descent_scale_[node.visits] : compute_descent_scale(node.visits);
    const Edges edges = tree.edges(node);
    int index = kNewEdge;
    float best = first_value(node) + scale * next.prior;
    int place = next.place;
    if (place == NewEdge::kNoPlace) {
      best = -std::numeric_limits<float>::infinity();
      place = 0;
    }
    for (int i = 0; i < node.num_edges; ++i) {
      const float score = (edges.value_sum[i] + scale * edges.prior[i]) / (1.0f + edges.visits[i]);
      if (score < best || (score == best && edges.legal_index[i] > place)) continue;
      best = score;
      index = i;
      place = edges.legal_index[i];
    }
    return index;
  }

  // Returns the most visited action that `is_out` does not exclude; ties go to the highest rank(),
  // then to the lowest action. Null if every action is excluded.
  template <class IsOut>
  const ActionResult* most_visited(uint32_t root_visits, const SearchResult& result,
                                   IsOut&& is_out) const {
    const ActionResult* best = nullptr;
    for (const ActionResult& a : result.actions) {
      if (is_out(a.action) || (best != nullptr && a.visits < best->visits)) continue;
      if (best == nullptr || a.visits > best->visits ||
          rank(root_visits, a) > rank(root_visits, *best)) {
        best = &a;
      }
    }
    return best;
  }

  // Sets `policy` to the visits that each action would have had without noise: all visits for
  // `best`, the most visited action; for others, the visits at which they score like `best`.
  void prune(uint32_t root_visits, const ActionResult& best, SearchResult& result) const {
    const double target = rank(root_visits, best);
    const double scale = exploration(root_visits) * std::sqrt(static_cast<double>(root_visits));
    const uint16_t best_action = best.action;
    for (ActionResult& a : result.actions) {
      a.policy = static_cast<float>(a.visits);
      if (a.action == best_action || a.visits == 0) continue;
      const double behind = target - static_cast<double>(a.value_to_play);
      const double justified = behind > 0.0 ? std::trunc(scale * a.prior / behind) : 0.0;
      a.policy = static_cast<float>(std::min(static_cast<double>(a.visits), justified));
    }
  }

 private:
  static constexpr uint32_t kTableSize = 2048;

  double exploration(uint32_t visits) const {
    const double base = settings_.minigo_c_base;
    return 2.0 *
           (std::log((1.0 + visits + base) / base) + static_cast<double>(settings_.minigo_c_init));
  }

  // The factor of an edge's prior / (1 + visits) during a descent.
  float compute_descent_scale(uint32_t visits) const {
    const double others = visits < 2 ? 1.0 : static_cast<double>(visits - 1);
    return static_cast<float>(exploration(visits) * std::sqrt(others));
  }

  // The Q of an action plus its exploration term, after the search.
  double rank(uint32_t root_visits, const ActionResult& a) const {
    const double explored = exploration(root_visits) * std::sqrt(1.0 + root_visits);
    return static_cast<double>(a.value_to_play) + explored * a.prior / (1.0 + a.visits);
  }

  SearchSettings settings_;
  std::vector<float> descent_scale_;  // factors indexed by the node's visits
};

}  // namespace tengen
