#pragma once
// Chooses the best action by the lower confidence bound of its value. A move with fewer visits but
// a reliably better value is then preferred to one with more visits only because of its prior.
// Source: KataGo (lightvector/KataGo), after Leela Zero. Differs from KataGo: a settled move's
// bound is its value.

#include <algorithm>
#include <cmath>

#include "search/result.h"
#include "search/selection/policy_target.h"
#include "search/settings.h"
#include "search/tree/tree.h"

namespace tengen {

// Returns the standard error of a node's mean value. A prior variance of 1, weighted as 1 /
// visits^2 visits, keeps the error large for few visits.
inline double standard_error(const Node& node) {
  const double visits = node.visits;
  const double mean = node.mean_value();
  const double variance =
      std::max(0.0, node.mean_square() - mean * mean) + 1.0 / (visits * visits * visits + 1.0);
  return std::sqrt(variance / visits);
}

// Returns the mean value of `child` for the side to play at `node`, minus `stdevs` standard errors.
inline double lower_bound(const Node& node, const Node& child, double stdevs) {
  return value_for(node, child, child.mean_value()) - stdevs * standard_error(child);
}

// Returns the root's edge with the highest lower bound among those with at least 3/20 of the
// maximum visits (KataGo's 0.15); ties go to the older edge. -1 if all edges are lost or unvisited.
template <class Memory>
int best_by_lower_bound(const BasicTree<Memory>& tree, float stdevs) {
  const auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  float most = 0.0f;
  for (int i = 0; i < root.num_edges; ++i) {
    if (std::isfinite(edges.value_sum[i])) most = std::max(most, edges.visits[i]);
  }
  if (most == 0.0f) return -1;
  int best = -1;
  double best_bound = 0.0;
  for (int i = 0; i < root.num_edges; ++i) {
    if (!std::isfinite(edges.value_sum[i]) || 20.0f * edges.visits[i] < 3.0f * most) continue;
    const Node& child = tree.node(edges.child[i]);
    const double bound = child.proof != Proof::kUnknown
                             ? static_cast<double>(edges.value_sum[i]) / edges.visits[i]
                             : lower_bound(root, child, stdevs);
    if (best < 0 || bound > best_bound) {
      best = i;
      best_bound = bound;
    }
  }
  return best;
}

// Adds the standard errors to a result of read_root(). Precondition: the tree stores squares.
template <class Memory>
void add_standard_errors(const BasicTree<Memory>& tree, SearchResult& result) {
  const auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  for (int i = 0; i < root.num_edges; ++i) {
    ActionResult& action = result.actions[edges.legal_index[i]];
    const Node& child = tree.node(edges.child[i]);
    if (action.visits == 0 || child.proof != Proof::kUnknown) continue;
    action.standard_error = static_cast<float>(standard_error(child));
  }
}

// Returns the action to play after a PUCT search whose policy target is in `result`.
template <class Memory>
int best_puct_action(const BasicTree<Memory>& tree, const SearchSettings& settings,
                     const SearchResult& result) {
  if (settings.lcb_stdevs > 0.0f && result.proof == Proof::kUnknown) {
    const auto& root = tree.node(tree.root());
    const int edge = best_by_lower_bound(tree, settings.lcb_stdevs);
    if (edge >= 0) return tree.actions(root)[tree.edges(root).legal_index[edge]];
  }
  return most_likely_action(result);
}

}  // namespace tengen
