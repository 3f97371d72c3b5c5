#pragma once
// The principal variation: the sequence of the most visited moves.

#include <cstddef>
#include <vector>

#include "search/tree/tree.h"

namespace tengen {

// Returns the root's `action` and the most visited continuation, at most `max_length` actions;
// empty if the action has no visit. Ties go to the edge visited first. No descent may be in flight.
template <class Memory>
std::vector<int> principal_variation(const BasicTree<Memory>& tree, int action, size_t max_length) {
  std::vector<int> moves;
  Arena::Offset current = tree.root();
  while (current != Arena::kNull && moves.size() < max_length) {
    const auto& node = tree.node(current);
    if (node.num_edges == 0) break;
    const Edges edges = tree.edges(node);
    const auto action_of = [&](int i) { return tree.actions(node)[edges.legal_index[i]]; };
    int best = -1;
    for (int i = 0; i < node.num_edges; ++i) {
      if (moves.empty() && action_of(i) != action) continue;
      if (edges.visits[i] > (best < 0 ? 0.0f : edges.visits[best])) best = i;
    }
    if (best < 0) break;
    moves.push_back(action_of(best));
    current = edges.child[best];
  }
  return moves;
}

}  // namespace tengen
