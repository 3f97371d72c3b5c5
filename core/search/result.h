#pragma once
// What a search hands over; nothing outside core/search sees a tree node.

#include <cstdint>
#include <vector>

#include "search/proof.h"

namespace tengen {

struct ActionResult {
  uint16_t action;
  float prior;  // as searched with: after root temperature and noise
  uint32_t visits;
  float value_to_play;  // mean of the root player's win minus loss, proven where known; 0 unvisited
  float policy;         // training target, sums to 1 over the legal actions
  Proof proof;          // for the root player, after this action
  // Mean final score in points of the root player, where kept; 0 unvisited.
  float score_to_play = 0.0f;
  // Mean of what the search maximised: the value, unless the score counts.
  float utility_to_play = 0.0f;
  // Of utility_to_play; 0 where settled or unvisited, and where the search keeps no squares.
  float standard_error = 0.0f;
};

struct SearchResult {
  // Every legal action that the request does not leave out, in increasing order.
  std::vector<ActionResult> actions;
  float root_value_to_play = 0.0f;     // win minus loss, [-1, 1]
  float root_score_to_play = 0.0f;     // mean final score in points, where kept
  bool has_scores = false;             // whether they were kept
  float network_value_to_play = 0.0f;  // the evaluator's own value of the root
  uint32_t num_simulations = 0;        // descents made in this search
  int best_action = -1;                // the strongest by this search
  Proof proof = Proof::kUnknown;       // of the root, for the side to play
};

}  // namespace tengen
