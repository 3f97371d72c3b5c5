#pragma once
// Settings of self-play. The Python config, with a docstring per field, is
// tengen/actors/selfplay_config.py; its to_native() sets the fields of the same names.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "search/settings.h"

namespace tengen {

struct SelfplaySettings {
  SearchSettings search;
  int num_slots = 16;  // concurrent games per worker, and rows per batch
  // Playout cap randomization: full search with `full_probability`, otherwise cheap search.
  int full_simulations = 64;
  int cheap_simulations = 16;
  float full_probability = 1.0f;
  // Temperature of the move choice: late + (early - late) * 0.5^(ply / halflife).
  float temperature_early = 1.0f;
  float temperature_late = 0.1f;
  float temperature_halflife = 10.0f;
  // Share of games that start with a book opening instead of random and policy plies.
  float book_share = 0.0f;
  // Opening: 0 to this number (uniform) of uniformly random moves; none of them ends the game.
  int max_opening_plies = 0;
  // The mean number of plies sampled from the network's policy after the random moves.
  float policy_opening_plies = 0.0f;
  float policy_opening_temperature = 1.0f;
  // Shares of games that fork from other games (openings/fork.h): early forks after a mean of
  // `early_fork_plies` plies, late forks at any ply; the best of 3 to `*_fork_choices` moves.
  float early_fork_share = 0.0f;
  float early_fork_plies = 2.0f;
  int early_fork_choices = 12;
  float late_fork_share = 0.0f;
  int late_fork_choices = 36;
  // Decided games: if the last values all exceed `reduce_above`, full searches shrink towards cheap
  // searches, and the weights of their rows towards `reduced_weight`. If they exceed
  // `resign_above`, the game ends, except in a share of games. 1 disables either.
  float reduce_above = 1.0f;
  float reduced_weight = 0.1f;
  float resign_above = 1.0f;
  float resign_playout_share = 0.1f;
  // Share of games that continue although the final owner of every cell is settled.
  float settled_playout_share = 0.02f;
  // Shares of a game's total row weight that go to rows with a surprising policy or value.
  float policy_surprise_share = 0.0f;
  float value_surprise_share = 0.0f;
  // Share of plies with a full search whose lead is estimated (plies/lead.h), and the simulations
  // of each search for the estimate. Only for games with komi.
  float lead_share = 0.0f;
  int lead_simulations = 6;
  // Only for the policy minigo (plies/minigo_choice.h): the number of plies whose move is sampled
  // from the visits, and the exponent of the visits; the number of consecutive passes after which
  // the opponent no longer plays on pass-alive points; the lower end of the range from which each
  // game samples its resignation threshold (the upper end is 1); whether a side may pass while
  // another move is legal; whether policy targets exclude visits that only noise caused, and visits
  // to pass-alive points that are not played.
  int soft_pick_plies = 30;
  float soft_pick_exponent = 0.98f;
  int restrict_pass_alive_after = 4;
  float resign_from = 0.9f;
  bool may_pass = true;
  bool prunes_target = true;
  // Whether a cheap search starts from the subtree of the last search.
  bool reuse_tree = true;
  uint64_t cache_bytes = 64ull << 20;  // bytes of a worker's evaluation cache
};

// A game from which other games may fork: its variant and all its moves.
struct ForkSource {
  std::string variant;
  std::vector<uint16_t> moves;
};

// One generation: a fixed set of games on one model.
struct Generation {
  uint64_t seed = 0;
  uint32_t generation = 0;
  uint32_t model = 0;
  uint32_t num_games = 0;
  // Indices of the games that are already durable and must not be played again.
  std::vector<uint32_t> finished = {};
  bool may_resign = false;  // whether `resign_above` has been shown to be safe
  // The variants to sample for each game (games/game.h; "" is the game itself), with weights above
  // 0. If empty, every game is the game itself.
  std::vector<std::pair<std::string, double>> variants = {};
  // Games to continue, as encoded by GameQueue::unfinished(); other games start from the beginning.
  std::vector<std::string> unfinished = {};
  // Games to fork from; if empty, no game is a fork.
  std::vector<ForkSource> fork_sources = {};
  // The opening book: lists of legal moves from the initial position that do not end the game.
  std::vector<std::vector<uint16_t>> openings = {};
};

}  // namespace tengen
