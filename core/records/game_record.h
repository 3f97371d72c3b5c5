#pragma once
// The record of a finished game, written by self-play and stored in journals. It has no planes or
// targets. records/rows.h derives these by replaying the game when a row is sampled.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "games/game.h"

namespace tengen {

// The value of PlyRecord::lead if the lead has not been estimated.
inline constexpr int16_t kNoLead = std::numeric_limits<int16_t>::min();
inline constexpr float kLeadsPerPoint = 8.0f;

// The record of one searched ply.
struct PlyRecord {
  uint16_t action = 0;           // the action that was played
  float root_value = 0.0f;       // value_to_play after the search, in [-1, 1]
  float policy_weight = 0.0f;    // weight of the policy target; 0: none (a cheap search)
  float value_weight = 0.0f;     // weight of the value target; 0: none
  uint32_t num_simulations = 0;  // simulations of the search that chose the action
  // The sparse policy target: (action, weight) pairs with weights above 0, scaled to fit 16 bits.
  // The probability of an action is weight / sum of weights. Empty if policy_weight is 0.
  std::vector<std::pair<uint16_t, uint16_t>> policy;
  // The lead of the side to move, in eighths of a point.
  int16_t lead = kNoLead;

  friend bool operator==(const PlyRecord&, const PlyRecord&) = default;
};

// A change of the model during a game: `model` plays from searched ply `ply` on.
struct ModelSwitch {
  uint16_t ply = 0;
  uint32_t model = 0;

  friend bool operator==(const ModelSwitch&, const ModelSwitch&) = default;
};

struct GameRecord {
  uint32_t generation = 0;
  uint32_t game_index = 0;  // within the generation; (generation, game_index) identifies the game
  uint32_t model = 0;       // number of the published model at the start of the game
  std::string variant;      // name of the variant (games/game.h); empty for the game itself
  Outcome outcome = Outcome::kOngoing;
  uint16_t num_opening_plies = 0;     // size of `opening`
  std::vector<uint16_t> opening;      // actions chosen without a search; they give no rows
  std::vector<PlyRecord> plies;       // the searched plies, after the opening
  std::vector<ModelSwitch> switches;  // in order of ply

  friend bool operator==(const GameRecord&, const GameRecord&) = default;
};

// Encodes the record of a finished game (layout in docs/reference/store_format.md). Throws Error if
// the record is invalid, for example has no outcome, more than 65535 plies, or a variant name of
// more than 255 bytes.
std::string encode(const GameRecord& record);

// Decodes the output of encode(), or a version-2 record without leads. Throws Error otherwise.
GameRecord decode(std::string_view bytes);

// Like encode(), for an unfinished game. Its plies with policy_weight 0 may have policy targets.
std::string encode_unfinished(const GameRecord& record);
GameRecord decode_unfinished(std::string_view bytes);

}  // namespace tengen
