#pragma once
// Detects decided games, in which the last searches agree on the winner. Reduces the effort of
// their searches, or resigns. Source: KataGo (lightvector/KataGo), "reduceVisits" of its self-play
// and the resignation of its gatekeeper.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "games/game.h"
#include "selfplay/ply_note.h"
#include "selfplay/settings.h"

namespace tengen {

// The number of searches that must agree to reduce visits, and to resign (KataGo's values).
inline constexpr size_t kReducePlies = 3;
inline constexpr size_t kResignPlies = 5;

// Returns the value for the first player that is closest to 0 among the last `num_plies` searches;
// 0 if their signs differ or there are fewer searches.
inline float agreed_value(const std::vector<PlyNote>& notes, size_t num_plies) {
  if (notes.size() < num_plies) return 0.0f;
  float least = 1.0f;
  float greatest = -1.0f;
  for (size_t i = notes.size() - num_plies; i < notes.size(); ++i) {
    least = std::min(least, notes[i].value_to_first);
    greatest = std::max(greatest, notes[i].value_to_first);
  }
  return least > 0.0f ? least : greatest < 0.0f ? greatest : 0.0f;
}

// The number of simulations of the next full search, and the weight of its row.
struct Effort {
  int num_simulations;
  float weight;
};
inline Effort full_effort(const SelfplaySettings& settings, const std::vector<PlyNote>& notes) {
  const float certainty = std::abs(agreed_value(notes, kReducePlies));
  if (certainty <= settings.reduce_above) return {settings.full_simulations, 1.0f};
  const float part = (certainty - settings.reduce_above) / (1.0f - settings.reduce_above);
  const float share = part * part;
  const auto least =
      static_cast<float>(std::min(settings.cheap_simulations, settings.full_simulations));
  const auto full = static_cast<float>(settings.full_simulations);
  return {static_cast<int>(std::lround(full + share * (least - full))),
          1.0f + share * (settings.reduced_weight - 1.0f)};
}

// Returns the outcome if a player resigns now; kOngoing if no player does.
inline Outcome resigned_outcome(const SelfplaySettings& settings,
                                const std::vector<PlyNote>& notes) {
  const float agreed = agreed_value(notes, kResignPlies);
  if (std::abs(agreed) <= settings.resign_above) return Outcome::kOngoing;
  return agreed > 0.0f ? Outcome::kFirstWins : Outcome::kSecondWins;
}

}  // namespace tengen
