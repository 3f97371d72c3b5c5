#pragma once
// Self-play: one thread's games as state machines. Each slot plays a game; next() runs every
// slot's search to its next leaf, so a batch holds at most one leaf a game and no search waits
// for another. A game depends on its index alone, not on slots, threads or batches.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "inference/port.h"
#include "search/search.h"
#include "selfplay/game_queue.h"
#include "selfplay/leaf_server.h"
#include "selfplay/move_choice.h"
#include "selfplay/opening.h"
#include "selfplay/settings.h"
#include "store/game_sink.h"

namespace tengen {

// A port with counters. One thread drives it; stats() may be read between its calls.
class SelfplayPort : public Port {
 public:
  virtual const WorkerStats& stats() const = 0;
};

template <Game G>
class SelfplayWorker final : public SelfplayPort {
 public:
  SelfplayWorker(const G& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
                 std::shared_ptr<GameSink> sink)
      : game_(game),
        settings_(settings),
        queue_(std::move(queue)),
        sink_(std::move(sink)),
        leaves_(game_, settings.num_slots, settings.cache_bytes) {
    legal_.resize(static_cast<size_t>(game_.num_actions()));
    for (int i = 0; i < settings.num_slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(game_, settings.search));
    }
  }

  int next() override {
    if (queue_->stopped()) return 0;
    return leaves_.fill([&] {
      for (auto& slot : slots_) run(*slot);
    });
  }

  void done() override { leaves_.answer(stats_); }
  BatchBuffers& buffers() override { return leaves_.buffers(); }
  const WorkerStats& stats() const override { return stats_; }

 private:
  struct Slot {
    Slot(const G& game, const SearchSettings& settings) : search(game, settings) {}
    Search<G> search;
    typename G::State state{};
    GameRecord record;
    bool idle = true;
    bool is_full = false;
  };

  // Plays the slot on until its search has to wait.
  void run(Slot& slot) {
    if (slot.search.is_waiting()) return;
    while (!slot.idle || start_game(slot)) {
      if (!leaves_.run(slot.search, stats_)) return;
      finish_ply(slot);
    }
  }

  bool start_game(Slot& slot) {
    const int64_t index = queue_->take();
    if (index == GameQueue::kNone) return false;
    const Generation& generation = queue_->generation();
    slot.record = {};
    slot.record.generation = generation.generation;
    slot.record.game_index = static_cast<uint32_t>(index);
    slot.record.model = generation.model;
    slot.state = game_.initial_state();
    Rng rng = stream(slot, Purpose::kOpening);
    const uint32_t num_plies = rng.below(static_cast<uint32_t>(settings_.max_opening_plies) + 1);
    play_opening(game_, slot.state, num_plies, rng, legal_.data(), slot.record.opening);
    slot.record.num_opening_plies = static_cast<uint16_t>(slot.record.opening.size());
    slot.search.reset();
    slot.idle = false;
    begin_ply(slot);
    return true;
  }

  void begin_ply(Slot& slot) {
    Rng rng = stream(slot, Purpose::kPlayoutCap);
    slot.is_full = rng.uniform() < settings_.full_probability;
    // A full search starts afresh, so that noise reaches every visit behind its target.
    if (slot.is_full || !settings_.reuse_tree) slot.search.reset();
    SearchRequest request;
    request.num_simulations =
        slot.is_full ? settings_.full_simulations : settings_.cheap_simulations;
    request.explore = slot.is_full;
    request.seed = queue_->generation().seed;
    request.generation = slot.record.generation;
    request.game = slot.record.game_index;
    request.ply = static_cast<uint32_t>(game_.ply(slot.state));
    slot.search.begin(slot.state, request);
  }

  void finish_ply(Slot& slot) {
    slot.search.finish(result_);
    const int ply = game_.ply(slot.state);
    Rng rng = stream(slot, Purpose::kMoveChoice);
    // The Gumbel draw is the exploration of a Gumbel search.
    const bool drawn = settings_.search.policy == RootPolicy::kGumbel && slot.is_full;
    const int action =
        drawn ? result_.best_action : sample_action(result_, move_temperature(settings_, ply), rng);
    slot.record.plies.push_back(record_ply(result_, action, slot.is_full));
    stats_.num_plies += 1;
    stats_.num_rows += slot.is_full;
    stats_.num_simulations += result_.num_simulations;
    game_.apply(slot.state, action);
    const Outcome outcome = game_.outcome(slot.state);
    if (outcome == Outcome::kOngoing) {
      slot.search.play(action, scratch_);
      begin_ply(slot);
      return;
    }
    slot.record.outcome = outcome;
    slot.idle = true;  // also where put() throws: the game is over and must not be played on
    sink_->put(slot.record);
    stats_.num_games += 1;
  }

  Rng stream(const Slot& slot, Purpose purpose) const {
    return Rng(queue_->generation().seed, slot.record.generation, slot.record.game_index,
               static_cast<uint32_t>(game_.ply(slot.state)), purpose);
  }

  const G game_;
  SelfplaySettings settings_;
  std::shared_ptr<GameQueue> queue_;
  std::shared_ptr<GameSink> sink_;
  LeafServer<G> leaves_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Tree scratch_;
  SearchResult result_;
  WorkerStats stats_;
  std::vector<uint16_t> legal_;
};

}  // namespace tengen
