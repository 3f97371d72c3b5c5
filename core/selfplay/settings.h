#pragma once
// How self-play games are played. The Python face, with a docstring a field, is
// tengen/actors/selfplay_config.py, whose to_native() sets each field from the one of the same
// name.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "search/settings.h"

namespace tengen {

struct SelfplaySettings {
  SearchSettings search;
  int num_slots = 16;  // games at once a worker: the rows of one batch
  // Playout cap randomization: a full search with this probability, else a cheap one.
  int full_simulations = 64;
  int cheap_simulations = 16;
  float full_probability = 1.0f;
  // Temperature of the move choice: late + (early - late) * 0.5^(ply / halflife).
  float temperature_early = 1.0f;
  float temperature_late = 0.1f;
  float temperature_halflife = 10.0f;
  // Share of the games that begin with an opening of the book instead of the next two.
  float book_share = 0.0f;
  // Opening: a uniform number 0..max of uniform random moves, none of which ends the game.
  int max_opening_plies = 0;
  // After those: plies drawn from the bare policy, a number with this mean.
  float policy_opening_plies = 0.0f;
  float policy_opening_temperature = 1.0f;
  // Shares of the games that fork off others, see openings/fork.h: early, after plies of this mean,
  // with the best of 3 to so many moves; and anywhere.
  float early_fork_share = 0.0f;
  float early_fork_plies = 2.0f;
  int early_fork_choices = 12;
  float late_fork_share = 0.0f;
  int late_fork_choices = 36;
  // Decided games: full searches shrink towards cheap ones, with rows of this weight at the least,
  // where the last values all passed `reduce_above`; the game ends where they passed
  // `resign_above`, but for a share of the games. Values never pass 1.
  float reduce_above = 1.0f;
  float reduced_weight = 0.1f;
  float resign_above = 1.0f;
  float resign_playout_share = 0.1f;
  // Share of the games that are played on though every cell has its owner for good.
  float settled_playout_share = 0.02f;
  // Shares of a game's rows' weight that go to those whose search surprised policy or value.
  float policy_surprise_share = 0.0f;
  float value_surprise_share = 0.0f;
  // Share of the plies with a full search that are asked for their lead, see plies/lead.h, and
  // simulations of each search for it; of games with komi.
  float lead_share = 0.0f;
  int lead_simulations = 6;
  // Policy minigo alone, see plies/minigo_choice.h: so many plies are drawn by visits to this
  // power; who has passed so often in a row stops the other from playing into pass-alive areas; a
  // side whose root is worth less than a bound, drawn once a game from here to 1, resigns; whether
  // a pass is played where another move is legal; whether targets lose the visits that only noise
  // made, and those on pass-alive points that are not played.
  int soft_pick_plies = 30;
  float soft_pick_exponent = 0.98f;
  int restrict_pass_alive_after = 4;
  float resign_from = 0.9f;
  bool may_pass = true;
  bool prunes_target = true;
  // A cheap search starts from the subtree that the last search left.
  bool reuse_tree = true;
  uint64_t cache_bytes = 64ull << 20;  // of evaluations, a worker
};

// A game that others may fork off: which it was, and all its moves.
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
  // Games already durable, not to be played again.
  std::vector<uint32_t> finished = {};
  bool may_resign = false;  // `resign_above` was seen to be safe
  // What each game is drawn from: variants (games/game.h, "" for the game itself), with weights
  // above 0. None: every game is the game itself.
  std::vector<std::pair<std::string, double>> variants = {};
  // Games to go on with, as encoded by GameQueue::unfinished(); others begin anew.
  std::vector<std::string> unfinished = {};
  // Games to fork off; none: no game is a fork.
  std::vector<ForkSource> fork_sources = {};
  // The book: moves from the start of the game, each opening legal and not over.
  std::vector<std::vector<uint16_t>> openings = {};
};

}  // namespace tengen
