#pragma once
// Reads the results of a search from the root of its tree.

#include "search/result.h"
#include "search/tree/proofs.h"
#include "search/tree/tree.h"

namespace tengen {

// Fills in the root data that only a tree with scores has: values without the score's utility, and
// scores. For a proven node both are those of the proving line.
template <class Memory>
void read_scores(const BasicTree<Memory>& tree, SearchResult& result) {
  const auto& root = tree.node(tree.root());
  const Edges edges = tree.edges(root);
  const auto mean_score = [&](const Node& node) {
    const NodeScore& score = tree.score_of(node);
    return node.proof == Proof::kUnknown ? static_cast<float>(score.score_sum / node.visits)
                                         : score.score_to_play;
  };
  for (int i = 0; i < root.num_edges; ++i) {
    ActionResult& a = result.actions[edges.legal_index[i]];
    if (a.visits == 0) continue;
    const Node& child = tree.node(edges.child[i]);
    const float sign = child.to_play == root.to_play ? 1.0f : -1.0f;
    a.score_to_play = sign * mean_score(child);
    if (a.proof != Proof::kUnknown) continue;
    a.value_to_play = sign * static_cast<float>(tree.score_of(child).win_loss_sum / child.visits);
  }
  result.root_score_to_play = mean_score(root);
  if (root.proof == Proof::kUnknown) {
    result.root_value_to_play = static_cast<float>(tree.score_of(root).win_loss_sum / root.visits);
  }
  result.network_value_to_play = tree.score_of(root).win_loss_to_play;
}

// Fills `result` for an expanded root, except best_action and num_simulations; `policy` is the
// visit count.
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
    // Skips an edge without visits, which a stopped descent leaves.
    if (a.visits == 0) continue;
    a.proof = proof_for(root, tree.node(edges.child[i]));
    a.value_to_play =
        a.proof == Proof::kUnknown ? edges.value_sum[i] / edges.visits[i] : proof_value(a.proof);
    a.utility_to_play =
        a.proof == Proof::kLoss ? a.value_to_play : edges.value_sum[i] / edges.visits[i];
  }
  result.proof = root.proof;
  result.root_value_to_play = root.proof == Proof::kUnknown ? static_cast<float>(root.mean_value())
                                                            : proof_value(root.proof);
  result.network_value_to_play = root.value_to_play;
  result.has_scores = tree.keeps_scores();
  if (result.has_scores) read_scores(tree, result);
}

}  // namespace tengen
