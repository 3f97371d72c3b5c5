#pragma once
// Games that are decided before they end: what the last searches agree on, and what it saves.
// Source: KataGo (lightvector/KataGo), "reduceVisits" of its self-play and the resignation of its
// gatekeeper.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "games/game.h"
#include "selfplay/ply_note.h"
#include "selfplay/settings.h"

namespace tengen {

// Searches that must agree before fewer visits do, and before a player resigns (KataGo's).
inline constexpr size_t kReducePlies = 3;
inline constexpr size_t kResignPlies = 5;

// The value to the first player that each of the last `num_plies` searches gave at least (in
// magnitude, with one sign); 0 where they disagree or are too few.
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

// What the next full search is given, and what its row counts.
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

// How the game ends now by resignation; kOngoing where nobody resigns.
inline Outcome resigned_outcome(const SelfplaySettings& settings,
                                const std::vector<PlyNote>& notes) {
  const float agreed = agreed_value(notes, kResignPlies);
  if (std::abs(agreed) <= settings.resign_above) return Outcome::kOngoing;
  return agreed > 0.0f ? Outcome::kFirstWins : Outcome::kSecondWins;
}

}  // namespace tengen
