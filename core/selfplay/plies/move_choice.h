#pragma once
// Chooses a move from a search result and records the ply.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/rng.h"
#include "records/game_record.h"
#include "search/result.h"
#include "selfplay/settings.h"

namespace tengen {

inline double move_temperature(const SelfplaySettings& settings, int ply) {
  return settings.temperature_late +
         (settings.temperature_early - settings.temperature_late) *
             std::pow(0.5, ply / static_cast<double>(settings.temperature_halflife));
}

// Samples an action with probability proportional to policy^(1/T), where T is `temperature`. Below
// T = 0.01 returns the best action.
inline int sample_action(const SearchResult& result, double temperature, Rng& rng) {
  if (temperature < 0.01) return result.best_action;
  float top = 0.0f;
  for (const ActionResult& a : result.actions) top = a.policy > top ? a.policy : top;
  double total = 0.0;
  const auto weight = [&](const ActionResult& a) {
    return a.policy <= 0.0f ? 0.0
                            : std::pow(static_cast<double>(a.policy / top), 1.0 / temperature);
  };
  for (const ActionResult& a : result.actions) total += weight(a);
  double left = rng.uniform() * total;
  int last = result.best_action;
  for (const ActionResult& a : result.actions) {
    const double w = weight(a);
    if (w <= 0.0) continue;
    last = a.action;
    left -= w;
    if (left < 0.0) break;
  }
  return last;
}

// Records a searched ply as a row with `weight`. With `keeps_policy` the record includes the policy
// even if the weight is 0, because the weight may be raised later.
inline PlyRecord record_ply(const SearchResult& result, int action, float weight,
                            bool keeps_policy) {
  PlyRecord ply;
  ply.action = static_cast<uint16_t>(action);
  // Clamps the value, because rounding in an evaluator's softmax can exceed the range by one unit.
  ply.root_value = std::clamp(result.root_value_to_play, -1.0f, 1.0f);
  ply.policy_weight = weight;
  ply.value_weight = weight;
  ply.num_simulations = result.num_simulations;
  if (weight == 0.0f && !keeps_policy) return ply;
  float top = 0.0f;
  for (const ActionResult& a : result.actions) top = a.policy > top ? a.policy : top;
  for (const ActionResult& a : result.actions) {
    const auto mass = static_cast<uint16_t>(a.policy / top * 65535.0f + 0.5f);
    if (mass > 0) ply.policy.emplace_back(a.action, mass);
  }
  return ply;
}

}  // namespace tengen
