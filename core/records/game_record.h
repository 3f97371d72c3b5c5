#pragma once
// One finished game, as self-play writes it and the store keeps it. It has no planes and targets;
// they are derived by replaying the game when a row is sampled (records/rows.h).

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "games/game.h"

namespace tengen {

// The lead of a ply for which none was estimated.
inline constexpr int16_t kNoLead = std::numeric_limits<int16_t>::min();
inline constexpr float kLeadsPerPoint = 8.0f;

// One searched ply.
struct PlyRecord {
  uint16_t action = 0;           // the move played
  float root_value = 0.0f;       // in [-1, 1], to play, after the search
  float policy_weight = 0.0f;    // 0: a cheap search, no policy target
  float value_weight = 0.0f;     // 0: no value target
  uint32_t num_simulations = 0;  // simulations of the search that chose the move
  // The sparse policy target: (action, weight), every weight above 0 and scaled to fit 16 bits; the
  // target is weight / sum of weights. Empty if policy_weight is 0.
  std::vector<std::pair<uint16_t, uint16_t>> policy;
  // The points that the side to move could give away to make the position even, in eighths.
  int16_t lead = kNoLead;

  friend bool operator==(const PlyRecord&, const PlyRecord&) = default;
};

// The model that played from this searched ply on.
struct ModelSwitch {
  uint16_t ply = 0;
  uint32_t model = 0;

  friend bool operator==(const ModelSwitch&, const ModelSwitch&) = default;
};

struct GameRecord {
  uint32_t generation = 0;
  uint32_t game_index = 0;  // within the generation; (generation, game_index) names the game
  uint32_t model = 0;       // number of the published model that started it
  std::string variant;      // the variant, if not the run's own game (games/game.h)
  Outcome outcome = Outcome::kOngoing;
  uint16_t num_opening_plies = 0;  // size of `opening`: moves without a search, never rows
  std::vector<uint16_t> opening;
  std::vector<PlyRecord> plies;       // after the opening
  std::vector<ModelSwitch> switches;  // in order of ply

  friend bool operator==(const GameRecord&, const GameRecord&) = default;
};

// Encodes one record (layout in docs/reference/store_format.md). Throws Error if it is invalid: an
// undecided outcome, a zero or missing policy weight, a length over 65535, a variant's name over
// 255.
std::string encode(const GameRecord& record);

// Exact inverse of encode; also reads version 2, without leads. Throws Error for other bytes.
GameRecord decode(std::string_view bytes);

// The same for an unfinished game: it has no outcome, and cheap searches may still have policies.
std::string encode_unfinished(const GameRecord& record);
GameRecord decode_unfinished(std::string_view bytes);

}  // namespace tengen
