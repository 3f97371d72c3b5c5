#pragma once
// Propagates settled values up a tree. A node is won if a child is won for the node's side, and
// settled if all its children are settled. Its score is that of the line that settles it.

#include <algorithm>
#include <limits>

#include "search/tree/tree.h"

namespace tengen {

// Returns the proof of `child` from the view of the side to play at `node`.
inline Proof proof_for(const Node& node, const Node& child) {
  return child.to_play == node.to_play ? child.proof : opposite(child.proof);
}

// Returns the proof of a node after one of its children got the proof `newest`. `newest` and the
// proofs that `proof_of(child)` returns are for the side to play at the node.
template <class Memory, class ProofOf>
Proof prove(BasicTree<Memory>& tree, const typename BasicTree<Memory>::Node& node, Proof newest,
            ProofOf&& proof_of) {
  if (newest == Proof::kWin) return Proof::kWin;
  if (node.num_edges < node.num_legal) return Proof::kUnknown;
  const Edges edges = tree.edges(node);
  Proof best = Proof::kLoss;
  for (int i = 0; i < node.num_edges; ++i) {
    if (edges.child[i] == Arena::kNull) return Proof::kUnknown;
    const Proof proof = proof_of(tree.node(edges.child[i]));
    if (proof == Proof::kUnknown) return Proof::kUnknown;
    best = std::max(best, proof);
  }
  return best;
}

// Returns the score of a newly proven node: the best for its side among children with `proof`.
template <class Memory, class ProofOf>
float proven_score(BasicTree<Memory>& tree, const typename BasicTree<Memory>::Node& node,
                   Proof proof, ProofOf&& proof_of) {
  const Edges edges = tree.edges(node);
  float best = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < node.num_edges; ++i) {
    if (edges.child[i] == Arena::kNull) continue;
    auto& child = tree.node(edges.child[i]);
    if (proof_of(child) != proof) continue;
    const float score = tree.score_of(child).score_to_play;
    best = std::max(best, child.to_play == node.to_play ? score : -score);
  }
  return best;
}

// Returns the value sum of an edge with `visits` visits to a settled child. `value` is for the side
// to play at the child, `proof` for the side to play at the node.
inline float settled_sum(const Node& node, const Node& child, Proof proof, float value,
                         float visits) {
  if (proof == Proof::kLoss) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value_for(node, child, value)) * visits;
}

}  // namespace tengen
