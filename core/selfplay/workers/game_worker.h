#pragma once
// The part of self-play that all searches share: takes the games of one thread from the queue,
// starts them, and passes them to the sink. worker.h and minigo_worker.h play the plies.

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "inference/port.h"
#include "records/game_sink.h"
#include "search/tree/tree.h"
#include "selfplay/leaves/leaf_batch.h"
#include "selfplay/openings/opening.h"
#include "selfplay/ply_note.h"
#include "selfplay/queue/game_queue.h"
#include "selfplay/settings.h"

namespace tengen {

// A port with counters, driven by one thread. Any thread may call stats(), which does not wait for
// next() but returns the counters after the last completed call of next() or done().
class SelfplayPort : public Port {
 public:
  virtual WorkerStats stats() const = 0;
  // Passes unfinished games to GameQueue::keep(). No thread may drive the port meanwhile.
  virtual void keep_unfinished() = 0;
};

// A game in progress.
template <Game G>
struct GameSlot {
  typename G::State state{};
  GameRecord record;
  std::vector<PlyNote> notes;  // one per ply of the record
  size_t num_resumable_plies =
      0;  // number of plies before the last search that started with an empty tree
  uint32_t num_extra_simulations = 0;  // of the last full search; see UnfinishedGame
  bool idle = true;
  bool may_settle = false;
};

// A self-play worker. Slot is a GameSlot with its searches, and Leaves serves these searches.
template <Game G, class Slot, class Leaves>
class GameWorker : public SelfplayPort {
 public:
  int next() final {
    if (queue_->stopped()) return 0;
    if (queue_->num_snapshots() != num_snapshots_) {
      num_snapshots_ = queue_->num_snapshots();
      keep_unfinished();
    }
    const int num_rows = leaves_.fill([&] {
      for (auto& slot : slots_) run(*slot);
    });
    publish_stats();
    return num_rows;
  }
  void done() final {
    leaves_.answer(stats_);
    publish_stats();
  }
  BatchBuffers& buffers() final { return leaves_.buffers(); }
  WorkerStats stats() const final {
    const std::lock_guard lock(published_mutex_);
    return published_;
  }
  void keep_unfinished() final {
    for (const auto& slot : slots_) {
      if (slot->idle || slot->num_resumable_plies == 0) continue;
      UnfinishedGame game{slot->record, slot->notes, slot->num_extra_simulations};
      game.record.plies.resize(slot->num_resumable_plies);
      game.notes.resize(slot->num_resumable_plies);
      queue_->keep(game);
    }
  }

 protected:
  // `serving`: further constructor arguments of Leaves, after the game.
  template <class... Serving>
  GameWorker(const G& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
             std::shared_ptr<GameSink> sink, Serving... serving)
      : game_(game),
        settings_(settings),
        queue_(std::move(queue)),
        leaves_(game_, serving...),
        sink_(std::move(sink)) {
    legal_.resize(static_cast<size_t>(game_.num_actions()));
  }

  // Plays the slot's game until its search must wait. Does nothing if the search is waiting.
  virtual void run(Slot& slot) = 0;

  // Assigns the queue's next game to the slot without starting it. Returns its index or nullopt.
  std::optional<uint32_t> take_game(Slot& slot) {
    const int64_t index = queue_->take();
    if (index == GameQueue::kNone) return std::nullopt;
    const Generation& generation = queue_->generation();
    slot.num_resumable_plies = 0;
    slot.num_extra_simulations = 0;
    slot.idle = false;
    slot.record = {};
    slot.record.generation = generation.generation;
    slot.record.game_index = static_cast<uint32_t>(index);
    slot.record.model = generation.model;
    slot.notes.clear();
    return slot.record.game_index;
  }

  // Starts a share of the games (not variants) with a book opening; returns whether it did.
  bool begin_book_opening(Slot& slot) {
    const Generation& generation = queue_->generation();
    const auto& openings = generation.openings;
    if (openings.empty() || settings_.book_share == 0.0f) return false;
    Rng rng(generation.seed, generation.generation, slot.record.game_index, 0, Purpose::kBook);
    if (rng.uniform() >= settings_.book_share) return false;
    slot.record.opening = openings[rng.below(static_cast<uint32_t>(openings.size()))];
    slot.record.num_opening_plies = static_cast<uint16_t>(slot.record.opening.size());
    slot.state = game_.initial_state();
    play_book_opening(game_, slot.state, slot.record.opening);
    return true;
  }

  // Starts the game's variant with random moves. Returns the random stream, which the plies that
  // follow continue.
  Rng begin_random_opening(Slot& slot) {
    slot.record.variant = queue_->variant(slot.record.game_index);
    slot.state = initial_state_of(game_, slot.record.variant);
    Rng rng = stream(slot, Purpose::kOpening);
    const uint32_t num_plies = rng.below(static_cast<uint32_t>(settings_.max_opening_plies) + 1);
    play_opening(game_, slot.state, num_plies, rng, legal_.data(), slot.record.opening);
    slot.record.num_opening_plies = static_cast<uint16_t>(slot.record.opening.size());
    return rng;
  }

  // Continues a game that another process left unfinished, possibly with a newer model.
  void go_on(Slot& slot, const UnfinishedGame& begun) {
    slot.record = begun.record;
    slot.notes = begun.notes;
    slot.state = initial_state_of(game_, slot.record.variant);
    for (const uint16_t action : slot.record.opening) game_.apply(slot.state, action);
    for (const PlyRecord& ply : slot.record.plies) game_.apply(slot.state, ply.action);
    const auto& switches = slot.record.switches;
    const uint32_t before = switches.empty() ? slot.record.model : switches.back().model;
    if (const uint32_t model = queue_->generation().model; model != before) {
      const auto ply = static_cast<uint16_t>(slot.record.plies.size());
      if (!switches.empty() && switches.back().ply == ply) slot.record.switches.pop_back();
      slot.record.switches.push_back({ply, model});
    }
  }

  // Decides at random whether the game may end when the final owner of every cell is settled.
  void draw_settlement(Slot& slot) {
    Rng rng = game_stream(slot, Purpose::kSettlement);
    slot.may_settle = rng.uniform() >= settings_.settled_playout_share;
  }

  // Returns the outcome of the slot's game in its current position; kOngoing if the game continues.
  Outcome outcome_of(const Slot& slot) const {
    const Outcome outcome = game_.outcome(slot.state);
    if constexpr (HasScore<G>) {
      if (outcome == Outcome::kOngoing && slot.may_settle && game_.is_settled(slot.state)) {
        return outcome_of_score(game_.score(slot.state));
      }
    }
    return outcome;
  }

  // Passes the slot's finished game, whose record contains the outcome, to the sink.
  void put_game(Slot& slot) {
    slot.idle = true;  // even if put() throws, because the game has ended and must not continue
    uint64_t num_rows = 0;
    for (PlyRecord& ply : slot.record.plies) {
      if (ply.policy_weight == 0.0f) ply.policy.clear();
      num_rows += ply.policy_weight > 0.0f;
    }
    sink_->put(slot.record);
    queue_->forget(slot.record.game_index);
    stats_.num_games += 1;
    stats_.num_rows += num_rows;
  }

  // Returns the random stream of a ply, or of the complete game.
  Rng stream(const Slot& slot, Purpose purpose) const {
    return Rng(queue_->generation().seed, slot.record.generation, slot.record.game_index,
               static_cast<uint32_t>(game_.ply(slot.state)), purpose);
  }
  Rng game_stream(const Slot& slot, Purpose purpose) const {
    return Rng(queue_->generation().seed, slot.record.generation, slot.record.game_index, 0,
               purpose);
  }

  // Returns the search request for a position of the slot's game.
  SearchRequest request_of(const Slot& slot, const typename G::State& state, int num_simulations,
                           bool explore) const {
    SearchRequest request;
    request.num_simulations = num_simulations;
    request.explore = explore;
    request.seed = queue_->generation().seed;
    request.generation = slot.record.generation;
    request.game = slot.record.game_index;
    request.ply = static_cast<uint32_t>(game_.ply(state));
    return request;
  }

  const G game_;
  SelfplaySettings settings_;
  const std::shared_ptr<GameQueue> queue_;
  Leaves leaves_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Tree scratch_;
  SearchResult result_;
  WorkerStats stats_;  // counters used only by the driver thread
  std::vector<uint16_t> legal_;

 private:
  // Publishes the counters. Called only twice per batch, so that inner loops take no lock.
  void publish_stats() {
    const std::lock_guard lock(published_mutex_);
    published_ = stats_;
  }

  const std::shared_ptr<GameSink> sink_;
  uint64_t num_snapshots_ = 0;
  mutable std::mutex published_mutex_;
  WorkerStats published_;  // copy of the counters for other threads
};

}  // namespace tengen
