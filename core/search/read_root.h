#pragma once
// From the root of a tree to what a search hands over.

#include "search/result.h"
#include "search/tree.h"

namespace tengen {

// The proof of `child` as the side to play at `node` sees it.
inline Proof proof_for(const Node& node, const Node& child) {
  return child.to_play == node.to_play ? child.proof : opposite(child.proof);
}

// Fills everything but best_action and num_simulations; `policy` becomes the visit count.
// Precondition: the root is expanded.
template <class Memory>
void read_root(const BasicTree<Memory>& tree, SearchResult& result) {
  const auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  const float* prior = tree.priors(root);
  const uint16_t* actions = tree.actions(root);
  result.actions.assign(root.num_legal, ActionResult{});
  for (int i = 0; i < root.num_legal; ++i) {
    result.actions[static_cast<size_t>(i)].action = actions[i];
    result.actions[static_cast<size_t>(i)].prior = prior[i];
  }
  for (int i = 0; i < root.num_edges; ++i) {
    ActionResult& a = result.actions[edges.legal_index[i]];
    a.prior = edges.prior[i];
    a.visits = static_cast<uint32_t>(edges.visits[i]);
    a.policy = edges.visits[i];
    // A descent that was stopped on its way leaves an edge without visits.
    if (a.visits == 0) continue;
    a.proof = proof_for(root, tree.node(edges.child[i]));
    a.value_to_play =
        a.proof == Proof::kUnknown ? edges.value_sum[i] / edges.visits[i] : proof_value(a.proof);
  }
  result.proof = root.proof;
  result.root_value_to_play =
      root.proof == Proof::kUnknown ? root.mean_value() : proof_value(root.proof);
  result.network_value_to_play = root.value_to_play;
}

// Makes `policy` the training target: all on winning actions where the root is won, none on losing
// ones while another action is left, and a sum of 1.
inline void settle_policy(SearchResult& result) {
  const auto is_out = [&](const ActionResult& a) {
    if (result.proof == Proof::kWin || result.proof == Proof::kDraw) return a.proof != result.proof;
    return result.proof != Proof::kLoss && a.proof == Proof::kLoss;
  };
  float total = 0.0f;
  for (ActionResult& a : result.actions) {
    if (is_out(a)) a.policy = 0.0f;
    total += a.policy;
  }
  if (total <= 0.0f) {  // no visit to any action that is left: the prior stands in
    for (ActionResult& a : result.actions) {
      if (!is_out(a)) total += a.policy = a.prior;
    }
  }
  for (ActionResult& a : result.actions) a.policy /= total;
}

// The action with the most policy mass, then the larger prior, then the lower action.
inline int most_likely_action(const SearchResult& result) {
  const ActionResult* best = nullptr;
  for (const ActionResult& a : result.actions) {
    if (best == nullptr || a.policy > best->policy ||
        (a.policy == best->policy && a.prior > best->prior)) {
      best = &a;
    }
  }
  return best->action;
}

}  // namespace tengen
