#pragma once
// Forced playouts and policy target pruning: an exploring root forces some visits to every noisy
// move, and the policy target excludes the visits that only the noise caused. Source: Wu 2019,
// "Accelerating self-play learning in Go", section 3.2. Differs from the paper, as in KataGo:
// pruning removes every visit that the move's value does not justify, not only the forced ones. A
// settled move is never forced, because its value is known.

#include <algorithm>
#include <cmath>

#include "search/result.h"
#include "search/tree/tree.h"

namespace tengen {

// Returns the oldest edge of an exploring root that leads to an unsettled child and has fewer than
// sqrt(k * prior * N) visits, where N is the total of all edges; -1 if there is none. Not inlined,
// so that searches without forced playouts pay nothing.
[[gnu::noinline]] inline int forced_edge(const Tree& tree, const Node& root, float k) {
  const Edges edges = tree.edges(root);
  const float owed = k * static_cast<float>(root.visits - 1);
  for (int i = 0; i < root.num_edges; ++i) {
    if (edges.visits[i] * edges.visits[i] >= owed * edges.prior[i]) continue;
    if (tree.node(edges.child[i]).proof == Proof::kUnknown) return i;
  }
  return -1;
}

// Prunes `policy`, which contains the visits of every action of an unsettled root. Caps each
// action's visits at the number with which its PUCT score (exploration `scale` * prior / (1 +
// visits)) would equal the score of the most visited action. Then zeroes single visits.
inline void prune_forced_playouts(float scale, SearchResult& result) {
  const ActionResult* best = nullptr;
  for (const ActionResult& a : result.actions) {
    if (a.visits == 0 || a.proof == Proof::kLoss) continue;
    if (best == nullptr || a.visits > best->visits ||
        (a.visits == best->visits && a.prior > best->prior)) {
      best = &a;
    }
  }
  if (best == nullptr) return;
  const auto most = static_cast<float>(best->visits);
  const float best_score = best->utility_to_play + scale * best->prior / (1.0f + most);
  const float single = std::min(1.0f, most / 64.0f);
  for (ActionResult& a : result.actions) {
    if (&a == best || a.visits == 0) continue;
    const float gap = best_score - a.utility_to_play;
    if (gap > 0.0f) {
      const float wanted = std::ceil(std::max(0.0f, scale * a.prior / gap - 1.0f));
      a.policy = std::min(a.policy, wanted);
    }
    if (a.policy <= single) a.policy = 0.0f;
  }
}

}  // namespace tengen
