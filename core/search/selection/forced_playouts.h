#pragma once
// Forced playouts and policy target pruning: an explored root looks at every noisy move for some
// visits, and the target forgets those that the search itself would not have made.
// Source: Wu 2019, "Accelerating self-play learning in Go", section 3.2.
// Differs from the paper, as KataGo does: pruning takes back every visit that the move's value
// does not justify and not only the forced ones. A settled move is never forced: its value is
// known.

#include <algorithm>
#include <cmath>

#include "search/result.h"
#include "search/tree/tree.h"

namespace tengen {

// The oldest edge of an explored root with fewer than sqrt(k * prior * N) visits, N those of all
// edges, whose child is not settled; -1 where there is none. Out of line, so that it costs searches
// without it nothing.
[[gnu::noinline]] inline int forced_edge(const Tree& tree, const Node& root, float k) {
  const Edges edges = tree.edges(root);
  const float owed = k * static_cast<float>(root.visits - 1);
  for (int i = 0; i < root.num_edges; ++i) {
    if (edges.visits[i] * edges.visits[i] >= owed * edges.prior[i]) continue;
    if (tree.node(edges.child[i]).proof == Proof::kUnknown) return i;
  }
  return -1;
}

// Cuts `policy`, the visits of every action of an unsettled root: of all but the most visited
// action those are left at which its PUCT score (exploration `scale` * prior / (1 + visits)) would
// have been that of the most visited. Then single visits go.
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
