#pragma once
// Games as flat columns, the format of a sealed segment. Columns have one entry per game, per ply
// or per sparse policy entry, in game order.

#include <cstdint>
#include <string_view>
#include <vector>

#include "records/game_record.h"

namespace tengen {

struct GameColumns {
  // One entry per game.
  std::vector<uint32_t> game_index;
  std::vector<uint8_t> outcome;  // an Outcome
  std::vector<uint32_t> model;
  std::vector<uint8_t> num_variant_bytes;
  std::vector<uint16_t> num_opening_plies;
  std::vector<uint16_t> num_plies;
  std::vector<uint16_t> num_switches;
  // One entry per ModelSwitch.
  std::vector<uint16_t> switch_ply;
  std::vector<uint32_t> switch_model;
  // One entry per byte of a variant name.
  std::vector<uint8_t> variant;
  // One entry per opening ply.
  std::vector<uint16_t> opening;
  // One entry per searched ply. PlyRecord documents these columns.
  std::vector<uint16_t> action;
  std::vector<float> root_value;
  std::vector<float> policy_weight;
  std::vector<float> value_weight;
  std::vector<uint32_t> num_simulations;
  std::vector<int16_t> lead;
  std::vector<uint16_t> num_policy_entries;
  // One entry per sparse policy entry.
  std::vector<uint16_t> policy_action;
  std::vector<uint16_t> policy_mass;
};

// Decodes the game records `frames` of one generation into columns, sorted by game_index. Of frames
// with equal game_index, keeps the first. Throws Error if a record is damaged or is from a
// different generation.
GameColumns merge_games(const std::vector<std::string_view>& frames, uint32_t generation);

}  // namespace tengen
