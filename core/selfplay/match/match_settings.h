#pragma once
// Who plays a match, and how.

#include <cstdint>

#include "search/settings.h"

namespace tengen {

struct MatchPlayer {
  enum class Kind : uint8_t { kNetwork = 0, kMcts = 1, kRandom = 2, kOutside = 3 };
  Kind kind = Kind::kRandom;
  int num_simulations = 64;  // of a network search, or the playouts of mcts:N
  SearchSettings search;     // kNetwork; no noise, the strongest move is played
  // kNetwork: a search goes on from what is left of the tree of the move before, whose visits count
  // towards num_simulations. A search by minigo always goes on so, with all its simulations beside
  // those visits, and does not play on pass-alive points.
  bool keeps_tree = false;
};

struct MatchSettings {
  MatchPlayer players[2];
  int num_slots = 16;
  int num_opening_plies = 2;
  uint64_t cache_bytes = 16ull << 20;
};

}  // namespace tengen
