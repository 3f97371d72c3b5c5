#pragma once
// One player's seat in the games of a match thread: a search per game, and the port for the leaves
// of these searches.

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "inference/port.h"
#include "search/minigo/minigo_search.h"
#include "search/serial/search.h"
#include "selfplay/leaves/leaf_server.h"
#include "selfplay/leaves/leaves_server.h"
#include "selfplay/match/match_settings.h"
#include "selfplay/plies/minigo_choice.h"

namespace tengen {

// Identifies a search: the match's seed, the game and the player.
struct MatchPlace {
  uint64_t seed;
  uint32_t game_index;
  int player;
};

// One player's seat. Not thread-safe. Slots are indices from 0.
template <Game G>
class MatchSeat : public Port {
 public:
  static constexpr int kNone = -1;

  // Starts the slot's next game.
  virtual void reset(int slot) = 0;
  // Whether the slot's search is waiting for the batch.
  virtual bool is_waiting(int slot) const = 0;
  // Continues the search for a move in `state`; returns the move, or kNone while the search is
  // waiting.
  virtual int think(int slot, const typename G::State& state, const MatchPlace& place) = 0;
  // The value of the last finished search for the player to move, in [-1, 1].
  virtual float value() const = 0;
  // Call after either player's move in the slot's game.
  virtual void play(int slot, int action, Tree& scratch) = 0;
};

// S is the type of search. `run_all` plays every game in which this player is to move.
template <Game G, class S>
class SearchSeat final : public MatchSeat<G> {
  static constexpr bool kIsMinigo = !std::is_same_v<S, Search<G>>;
  using Leaves = std::conditional_t<kIsMinigo, LeavesServer<G, S>, LeafServer<G, S>>;

 public:
  // `game` must outlive the seat.
  template <class... Serving>
  SearchSeat(const G& game, const MatchPlayer& player, int num_slots, std::function<void()> run_all,
             Serving... serving)
      : game_(game),
        player_(player),
        run_all_(std::move(run_all)),
        leaves_(game, serving...),
        alive_(game),
        thinks_(static_cast<size_t>(num_slots), false) {
    searches_.reserve(thinks_.size());
    for (int i = 0; i < num_slots; ++i) searches_.emplace_back(game, player.search);
  }

  int next() override { return leaves_.fill(run_all_); }
  void done() override { leaves_.answer(stats_); }
  BatchBuffers& buffers() override { return leaves_.buffers(); }

  void reset(int slot) override {
    searches_[static_cast<size_t>(slot)].reset();
    thinks_[static_cast<size_t>(slot)] = false;
  }
  bool is_waiting(int slot) const override {
    return searches_[static_cast<size_t>(slot)].is_waiting();
  }
  int think(int slot, const typename G::State& state, const MatchPlace& place) override {
    S& search = searches_[static_cast<size_t>(slot)];
    if (!thinks_[static_cast<size_t>(slot)]) begin(search, state, place);
    thinks_[static_cast<size_t>(slot)] = true;
    if (!leaves_.run(search, stats_)) return MatchSeat<G>::kNone;
    search.finish(result_);
    thinks_[static_cast<size_t>(slot)] = false;
    if constexpr (kIsMinigo) {
      alive_.read(game_, state, true);
      return best_allowed(game_, search, result_, alive_);
    }
    return result_.best_action;
  }
  float value() const override { return result_.root_value_to_play; }
  void play(int slot, int action, Tree& scratch) override {
    if (kIsMinigo || player_.keeps_tree) {
      searches_[static_cast<size_t>(slot)].play(action, scratch);
    }
  }

 private:
  void begin(S& search, const typename G::State& state, const MatchPlace& place) {
    SearchRequest request;
    request.num_simulations = player_.num_simulations;
    request.seed = place.seed;
    request.game = place.game_index;
    request.ply = static_cast<uint32_t>(game_.ply(state));
    if constexpr (kIsMinigo) {
      // Uses a symmetry seed, so that games between deterministic players differ.
      const uint64_t index = 2 * uint64_t{place.game_index} + static_cast<uint64_t>(place.player);
      return search.begin(state, request, mix64(mix64(place.seed) + index) | 1);
    } else {
      if (!player_.keeps_tree) search.reset();
      search.begin(state, request);
    }
  }

  const G& game_;
  const MatchPlayer player_;
  std::function<void()> run_all_;
  std::vector<S> searches_;
  Leaves leaves_;
  PassAlivePoints<G> alive_;
  std::vector<bool> thinks_;  // indexed by slot: whether its search has started
  WorkerStats stats_;
  SearchResult result_;
};

// Creates the seat for a player's search policy. The port of a player without a search has no rows.
// Throws Error if the policy is minigo and the game is external.
template <Game G>
std::unique_ptr<MatchSeat<G>> make_seat(const G& game, const MatchSettings& settings, int player,
                                        std::function<void()> run_all) {
  const MatchPlayer& who = settings.players[player];
  const int num_slots = settings.num_slots;
  if (who.search.policy != RootPolicy::kMinigo) {
    return std::make_unique<SearchSeat<G, Search<G>>>(
        game, who, num_slots, std::move(run_all), num_slots, settings.cache_bytes,
        who.search.score_weight > 0.0f, who.search.root_symmetries);
  }
  if constexpr (!ExternallyPlayed<G>) {
    return std::make_unique<SearchSeat<G, MinigoSearch<G>>>(
        game, who, num_slots, std::move(run_all), num_slots, who.search.minigo_virtual_losses,
        settings.cache_bytes);
  }
  throw Error("search.policy (minigo) must be puct or gumbel for a game in Python; choose one");
}

}  // namespace tengen
