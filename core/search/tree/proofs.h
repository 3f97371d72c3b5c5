#pragma once
// How settled values propagate up a tree: a node is won if a child is won for it, and settled when
// all its children are. Its score, if scores are kept, is that of the line that settles it.

#include <algorithm>
#include <limits>

#include "search/tree/tree.h"

namespace tengen {

// The proof of `child` from the view of the side to play at `node`.
inline Proof proof_for(const Node& node, const Node& child) {
  return child.to_play == node.to_play ? child.proof : opposite(child.proof);
}

// The proof of a node after one of its children was found to be `newest` for it. `proof_of(child)`
// returns a child's proof from the same view.
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

// The score of a node that its children just proved: the best for its side among the proofs.
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

// The value sum of `visits` visits from a node to a settled child with this value for its own side.
// `proof` is the child's from the view of the side to play at the node.
inline float settled_sum(const Node& node, const Node& child, Proof proof, float value,
                         float visits) {
  if (proof == Proof::kLoss) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value_for(node, child, value)) * visits;
}

}  // namespace tengen
