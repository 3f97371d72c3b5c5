#pragma once
// The result of a search, for code outside core/search, which does not access tree nodes.

#include <cstdint>
#include <vector>

#include "search/proof.h"

namespace tengen {

struct ActionResult {
  uint16_t action;
  float prior;  // as used in the search, after root temperature and noise
  uint32_t visits;
  float value_to_play;  // mean win minus loss for the root player, or proven; 0 if unvisited
  float policy;         // policy target; sums to 1 over `actions`
  Proof proof;          // proof for the root player after this action
  // Mean final score in points for the root player, if scores are kept; 0 if unvisited.
  float score_to_play = 0.0f;
  // Mean of the maximised utility, which is value_to_play unless the score counts.
  float utility_to_play = 0.0f;
  // Standard error of utility_to_play; 0 if settled or unvisited, or if squares are not kept.
  float standard_error = 0.0f;
};

struct SearchResult {
  // The legal actions, in ascending order, without those that the request excludes or the rules
  // decide (games/decisive.h).
  std::vector<ActionResult> actions;
  float root_value_to_play = 0.0f;  // win minus loss, [-1, 1]
  float root_score_to_play = 0.0f;  // mean final score in points, if has_scores
  bool has_scores = false;          // whether the search kept scores
  // The evaluator's probability of `actions` among all legal ones; 1 if the root was evaluated in
  // an earlier search or if several threads search the tree.
  float considered_prior = 1.0f;
  float network_value_to_play = 0.0f;  // the evaluator's own value of the root
  uint32_t num_simulations = 0;        // number of descents in this search
  int best_action = -1;                // the strongest action according to this search
  Proof proof = Proof::kUnknown;       // proof of the root for the side to play
};

}  // namespace tengen
