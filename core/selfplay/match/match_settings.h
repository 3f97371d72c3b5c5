#pragma once
// The players of a match and its settings.

#include <cstdint>

#include "search/settings.h"

namespace tengen {

struct MatchPlayer {
  enum class Kind : uint8_t { kNetwork = 0, kMcts = 1, kRandom = 2, kOutside = 3 };
  Kind kind = Kind::kRandom;
  int num_simulations = 64;  // simulations of a network search, or playouts of mcts:N
  SearchSettings search;     // kNetwork only: the player plays the strongest move, without noise
  // kNetwork only: whether a search reuses the subtree of the previous search, whose visits count
  // towards num_simulations. A search with minigo always reuses the tree, performs num_simulations
  // in addition to those visits, and does not play on pass-alive points.
  bool keeps_tree = false;
  // kNetwork only: the player resigns after kResignMoves own searches in a row with a value below
  // this, in [-1, 1]; -1 for never.
  float resign_below = -1.0f;
};

// As in KataGo's play.
inline constexpr int kResignMoves = 3;

struct MatchSettings {
  MatchPlayer players[2];
  int num_slots = 16;
  int num_opening_plies = 2;
  uint64_t cache_bytes = 16ull << 20;
};

}  // namespace tengen
