#pragma once
// Computes the policy target and the strongest action of a finished search.

#include "search/result.h"

namespace tengen {

// Normalises the weights in `policy`. Proofs take precedence: if the root is proven won or drawn,
// only actions with the same proof have weight; otherwise losing actions have none unless all lose.
inline void normalise_policy(SearchResult& result) {
  const auto is_out = [&](const ActionResult& a) {
    if (result.proof == Proof::kWin || result.proof == Proof::kDraw) {
      return a.proof != result.proof;
    }
    return result.proof != Proof::kLoss && a.proof == Proof::kLoss;
  };
  float total = 0.0f;
  for (ActionResult& a : result.actions) {
    if (is_out(a)) a.policy = 0.0f;
    total += a.policy;
  }
  if (total <= 0.0f) {  // no remaining action was visited, so use the prior
    for (ActionResult& a : result.actions) {
      if (!is_out(a)) total += a.policy = a.prior;
    }
  }
  for (ActionResult& a : result.actions) a.policy /= total;
}

// Returns the action with the highest policy; ties go to the higher prior, then the lower action.
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
