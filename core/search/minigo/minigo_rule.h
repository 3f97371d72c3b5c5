#pragma once
// The rule of the MLPerf benchmark minigo: which edge a descent takes, and what is learned and
// played of a root. minigo_search.h has the rest.
// Source: MLPerf training v2.1, minigo; its formula of exploration is AlphaZero's (Silver et al.
// 2018, supplement), the factor 2 is minigo's, the pruned target is Wu 2019, "Accelerating
// self-play learning in Go", section 3.2.
//
// An edge is worth Q = W / (1 + N): what a node's evaluation says of its children, less a penalty,
// is W of each from the beginning, and counts as one visit for ever. Edges::value_sum is that W.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "search/result.h"
#include "search/selection/puct.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// An action that has no edge yet: its place among the legal ones, and its prior.
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

  // W of each edge of an evaluated node that nobody has descended.
  float first_value(const Node& node) const {
    return std::clamp(node.value_to_play - settings_.minigo_value_penalty, -1.0f, 1.0f);
  }

  // The index of the edge to descend, or kNewEdge for `next`, the likeliest of the others, which
  // all have the same Q. Of equal ones it is the lowest action. Precondition: there is an edge or a
  // place.
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

  // The action of the most visits that `is_out` does not name, of equal ones the one of the highest
  // rank(), then the lowest; null where every action is out.
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

  // `policy` becomes how many visits each action would have had without the noise in its prior: all
  // of `best`, the most visited; of another those at which its score would be that of `best`.
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

  // What prior / (1 + visits) of an edge is multiplied by in a descent.
  float compute_descent_scale(uint32_t visits) const {
    const double others = visits < 2 ? 1.0 : static_cast<double>(visits - 1);
    return static_cast<float>(exploration(visits) * std::sqrt(others));
  }

  // Q and exploration of an action after the search.
  double rank(uint32_t root_visits, const ActionResult& a) const {
    const double explored = exploration(root_visits) * std::sqrt(1.0 + root_visits);
    return static_cast<double>(a.value_to_play) + explored * a.prior / (1.0 + a.visits);
  }

  SearchSettings settings_;
  std::vector<float> descent_scale_;  // by the node's visits
};

}  // namespace tengen
