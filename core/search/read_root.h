#pragma once
// What a tree says of its root, for what a search hands over.

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

}  // namespace tengen
