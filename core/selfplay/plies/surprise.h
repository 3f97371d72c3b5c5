#pragma once
// Surprise weighting: a share of the total weight of a game's rows goes to rows whose search result
// differs from the network's prediction, because the network learns most from these rows. Source:
// KataGo (lightvector/KataGo), "Policy Surprise Weighting", and its value counterpart. Differs from
// KataGo: weights stay fractional and multiply the loss, while KataGo writes integer copies of a
// row and samples the remainder; the expectation is the same. Values and outcomes are compared as
// means, so a draw counts as half a win.

#include <algorithm>
#include <cmath>
#include <vector>

#include "records/game_record.h"
#include "search/result.h"
#include "selfplay/ply_note.h"
#include "selfplay/settings.h"

namespace tengen {

// Returns the relative entropy of the policy target with respect to the search's prior over all
// legal actions, in nats.
inline float policy_surprise(const SearchResult& result) {
  double sum = 0.0;
  for (const ActionResult& a : result.actions) {
    if (a.policy <= 0.0f) continue;
    const double prior = std::max(static_cast<double>(a.prior), 1e-30);
    sum += a.policy * std::log(static_cast<double>(a.policy) / prior);
  }
  sum -= std::log(std::max(static_cast<double>(result.considered_prior), 1e-30));
  return static_cast<float>(std::max(0.0, sum));
}

// Returns for each ply the relative entropy, clamped to [0, 1], of the observed result with respect
// to the network's value (win against loss). The observed result is a mean of the outcome and the
// values of this and later searches, with weight `now` for the current ply and geometrically
// decreasing weights for later plies.
inline std::vector<double> value_surprises(const std::vector<PlyNote>& notes,
                                           float outcome_to_first, double now) {
  const auto half = [](double value) { return std::clamp(0.5 + 0.5 * value, 1e-9, 1.0 - 1e-9); };
  std::vector<double> surprises(notes.size());
  double showed = outcome_to_first;
  for (size_t i = notes.size(); i-- > 0;) {
    showed += now * (notes[i].value_to_first - showed);
    const double p = half(showed);
    const double q = half(notes[i].network_value_to_first);
    const double entropy = p * std::log(p / q) + (1.0 - p) * std::log((1.0 - p) / (1.0 - q));
    surprises[i] = std::clamp(entropy, 0.0, 1.0);
  }
  return surprises;
}

// Redistributes the weights of a finished game's rows. A cheap search becomes a row if its policy
// surprise exceeds 1.5 times the rows' average. `num_cells`, the size of the board, determines how
// fast the weights of later values decrease.
inline void weigh_by_surprise(const SelfplaySettings& settings, const std::vector<PlyNote>& notes,
                              int num_cells, GameRecord& record) {
  // The minimum weight of a row. A row with less weight costs the learner as much as any other row
  // but teaches almost nothing.
  constexpr double kLeastWeight = 1.0 / 64;
  constexpr double kLittleValueSurprise = 0.01;
  const double now = 1.0 / (1.0 + 0.016 * num_cells);
  const std::vector<double> value = value_surprises(notes, value_to_first(record.outcome), now);
  double total = 0.0;
  double policy_total = 0.0;
  double value_total = 0.0;
  for (size_t i = 0; i < notes.size(); ++i) {
    const double weight = record.plies[i].policy_weight;
    total += weight;
    policy_total += weight * notes[i].policy_surprise;
    value_total += weight * value[i];
  }
  if (total < 1.0) return;
  const double threshold = 1.5 * policy_total / total;
  // Shrinks the value share if values hardly change, because their differences are then noise.
  const double value_share =
      settings.value_surprise_share * std::min(1.0, value_total / total / kLittleValueSurprise);
  const double policy_share = settings.policy_surprise_share;
  std::vector<double> policy(notes.size());
  policy_total = 0.0;
  for (size_t i = 0; i < notes.size(); ++i) {
    const double weight = record.plies[i].policy_weight;
    const double surprise = notes[i].policy_surprise;
    policy[i] = weight * surprise + (1.0 - weight) * std::max(0.0, surprise - threshold);
    policy_total += policy[i];
  }
  for (size_t i = 0; i < notes.size(); ++i) {
    PlyRecord& ply = record.plies[i];
    const double weight = ply.policy_weight;
    double spread = (1.0 - policy_share - value_share) * weight;
    spread +=
        policy_share * total * (policy_total > 0.0 ? policy[i] / policy_total : weight / total);
    if (value_total > 0.0) spread += value_share * total * weight * value[i] / value_total;
    ply.policy_weight = ply.value_weight =
        spread < kLeastWeight ? 0.0f : static_cast<float>(spread);
  }
}

}  // namespace tengen
