#pragma once
// Self-play: one thread's games as state machines. Each slot plays a game; next() runs every
// slot's search to its next leaf, so a batch holds at most one leaf a game and no search waits
// for another. A game depends on its index alone, not on slots, threads or batches.

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "inference/port.h"
#include "records/game_sink.h"
#include "search/search.h"
#include "selfplay/decided.h"
#include "selfplay/fork.h"
#include "selfplay/game_queue.h"
#include "selfplay/lead.h"
#include "selfplay/leaf_server.h"
#include "selfplay/move_choice.h"
#include "selfplay/opening.h"
#include "selfplay/ply_note.h"
#include "selfplay/settings.h"
#include "selfplay/surprise.h"

namespace tengen {

// A port with counters. One thread drives it; any thread may call stats(), which does not wait for
// next(): it gives the counters as the last call of next() or done() that returned left them.
class SelfplayPort : public Port {
 public:
  virtual WorkerStats stats() const = 0;
  // Hands the games that it plays to GameQueue::keep(). Not while another thread drives the port.
  virtual void keep_unfinished() = 0;
};

template <Game G>
class SelfplayWorker final : public SelfplayPort {
 public:
  SelfplayWorker(const G& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
                 std::shared_ptr<GameSink> sink)
      : game_(game),
        settings_(settings),
        weighs_by_surprise_(settings.policy_surprise_share > 0.0f ||
                            settings.value_surprise_share > 0.0f),
        queue_(std::move(queue)),
        sink_(std::move(sink)),
        leaves_(game_, settings.num_slots, settings.cache_bytes,
                settings.search.score_weight > 0.0f, settings.search.root_symmetries) {
    legal_.resize(static_cast<size_t>(game_.num_actions()));
    for (int i = 0; i < settings.num_slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(game_, settings.search));
      if (HasKomi<G> && settings.lead_share > 0.0f) {
        slots_.back()->lead_search.emplace(game_, settings.search);
      }
    }
  }

  int next() override {
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

  void done() override {
    leaves_.answer(stats_);
    publish_stats();
  }
  BatchBuffers& buffers() override { return leaves_.buffers(); }
  WorkerStats stats() const override {
    const std::lock_guard lock(published_mutex_);
    return published_;
  }
  void keep_unfinished() override {
    for (const auto& slot : slots_) {
      if (slot->idle || slot->num_resumable_plies == 0) continue;
      UnfinishedGame game{slot->record, slot->notes};
      game.record.plies.resize(slot->num_resumable_plies);
      game.notes.resize(slot->num_resumable_plies);
      queue_->keep(game);
    }
  }

 private:
  struct Slot {
    Slot(const G& game, const SearchSettings& settings) : search(game, settings) {}
    Search<G> search;
    typename G::State state{};
    GameRecord record;
    std::vector<PlyNote> notes;            // one a ply of the record
    uint32_t num_opening_plies = 0;        // still to be drawn from the policy
    MoveTrial<G> trial;                    // of a fork's first move
    LeadBisection lead;                    // of the position that was searched
    std::optional<Search<G>> lead_search;  // of it with other komi; its own tree stays
    size_t num_resumable_plies = 0;  // of the record, at the last search that began without a tree
    bool idle = true;
    bool may_resign = false;
    bool may_settle = false;
    float weight = 0.0f;  // of the ply in search as a row; 0: a cheap search
  };

  // Twice a batch, so that the lock costs the loops over plies and simulations nothing.
  void publish_stats() {
    const std::lock_guard lock(published_mutex_);
    published_ = stats_;
  }

  // Plays the slot on until its search has to wait.
  void run(Slot& slot) {
    if (search_of(slot).is_waiting()) return;
    while (!slot.idle || start_game(slot)) {
      Search<G>& search = search_of(slot);
      const int before = search.num_simulations();
      const bool is_over = leaves_.run(search, stats_);
      stats_.num_simulations += static_cast<uint64_t>(search.num_simulations() - before);
      if (!is_over) return;
      search.finish(result_);
      if (slot.lead.is_waiting()) {
        slot.lead.accept(result_.root_value_to_play);
        go_on_with_lead(slot);
      } else if (slot.trial.is_waiting()) {
        finish_trial(slot);
      } else if (slot.num_opening_plies > 0) {
        finish_opening_ply(slot);
      } else if (draws_lead(slot)) {
        begin_lead_of(slot);
      } else {
        finish_ply(slot, kNoLead);
      }
    }
  }

  static Search<G>& search_of(Slot& slot) {
    return slot.lead.is_waiting() ? *slot.lead_search : slot.search;
  }

  bool start_game(Slot& slot) {
    const int64_t index = queue_->take();
    if (index == GameQueue::kNone) return false;
    const Generation& generation = queue_->generation();
    slot.num_resumable_plies = 0;
    slot.search.reset();
    slot.idle = false;
    if (const UnfinishedGame* begun = queue_->begun(static_cast<uint32_t>(index))) {
      go_on(slot, *begun);
    } else {
      begin_game(slot, static_cast<uint32_t>(index));
    }
    Rng resignation(generation.seed, generation.generation, slot.record.game_index, 0,
                    Purpose::kResignation);
    slot.may_resign =
        generation.may_resign && resignation.uniform() >= settings_.resign_playout_share;
    Rng settlement(generation.seed, generation.generation, slot.record.game_index, 0,
                   Purpose::kSettlement);
    slot.may_settle = settlement.uniform() >= settings_.settled_playout_share;
    begin_ply(slot);
    return true;
  }

  void begin_game(Slot& slot, uint32_t index) {
    const Generation& generation = queue_->generation();
    slot.record = {};
    slot.record.generation = generation.generation;
    slot.record.game_index = index;
    slot.record.model = generation.model;
    slot.notes.clear();
    Rng fork_rng(generation.seed, generation.generation, index, 0, Purpose::kFork);
    if (const auto fork = draw_fork(settings_, generation.fork_sources, fork_rng)) {
      return begin_fork(slot, generation.fork_sources[fork->source], *fork, fork_rng);
    }
    if (begin_book_opening(slot)) return;
    slot.record.variant = queue_->variant(slot.record.game_index);
    slot.state = initial_state_of(game_, slot.record.variant);
    Rng rng = stream(slot, Purpose::kOpening);
    const uint32_t num_plies = rng.below(static_cast<uint32_t>(settings_.max_opening_plies) + 1);
    play_opening(game_, slot.state, num_plies, rng, legal_.data(), slot.record.opening);
    slot.record.num_opening_plies = static_cast<uint16_t>(slot.record.opening.size());
    slot.num_opening_plies = num_policy_plies(settings_.policy_opening_plies, rng);
  }

  // Whether the game begins with an opening of the book, which is of the game itself.
  bool begin_book_opening(Slot& slot) {
    const Generation& generation = queue_->generation();
    const auto& openings = generation.openings;
    if (openings.empty() || settings_.book_share == 0.0f) return false;
    Rng rng(generation.seed, generation.generation, slot.record.game_index, 0, Purpose::kBook);
    if (rng.uniform() >= settings_.book_share) return false;
    slot.record.opening = openings[rng.below(static_cast<uint32_t>(openings.size()))];
    slot.record.num_opening_plies = static_cast<uint16_t>(slot.record.opening.size());
    slot.num_opening_plies = 0;
    slot.state = game_.initial_state();
    play_book_opening(game_, slot.state, slot.record.opening);
    return true;
  }

  void begin_fork(Slot& slot, const ForkSource& source, const Fork& fork, Rng& rng) {
    slot.record.variant = source.variant;
    slot.record.opening.assign(source.moves.begin(),
                               source.moves.begin() + static_cast<ptrdiff_t>(fork.num_plies));
    slot.record.num_opening_plies = static_cast<uint16_t>(fork.num_plies);
    slot.num_opening_plies = 0;
    slot.state = position_of(game_, source, fork.num_plies);
    slot.trial.begin(game_, slot.state, fork.num_choices, rng, legal_.data());
  }

  // Goes on with a game that another process left, perhaps with a newer model.
  void go_on(Slot& slot, const UnfinishedGame& begun) {
    slot.record = begun.record;
    slot.notes = begun.notes;
    slot.num_opening_plies = 0;
    slot.trial.clear();
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

  void begin_ply(Slot& slot) {
    if (slot.trial.is_waiting()) {
      typename G::State then = slot.state;
      game_.apply(then, slot.trial.move());
      return begin_search(slot, then, 0, false);
    }
    if (slot.num_opening_plies > 0) return begin_search(slot, slot.state, 0, false);
    Rng rng = stream(slot, Purpose::kPlayoutCap);
    if (rng.uniform() < settings_.full_probability) {
      const Effort effort = full_effort(settings_, slot.notes);
      slot.weight = effort.weight;
      // It starts afresh, so that noise reaches every visit behind its target.
      start_afresh(slot);
      begin_search(slot, slot.state, effort.num_simulations, true);
    } else {
      slot.weight = 0.0f;
      if (!settings_.reuse_tree) start_afresh(slot);
      begin_search(slot, slot.state, settings_.cheap_simulations, false);
    }
  }

  void start_afresh(Slot& slot) {
    slot.search.reset();
    slot.num_resumable_plies = slot.record.plies.size();
  }

  void begin_search(Slot& slot, const typename G::State& state, int num_simulations, bool explore) {
    SearchRequest request;
    request.num_simulations = num_simulations;
    request.explore = explore;
    request.seed = queue_->generation().seed;
    request.generation = slot.record.generation;
    request.game = slot.record.game_index;
    request.ply = static_cast<uint32_t>(game_.ply(state));
    search_of(slot).begin(state, request);
  }

  void finish_trial(Slot& slot) {
    typename G::State then = slot.state;
    game_.apply(then, slot.trial.move());
    const bool is_own = game_.to_play(then) == game_.to_play(slot.state);
    const float value = result_.network_value_to_play;
    slot.trial.accept(is_own ? value : -value);
    if (!slot.trial.is_waiting()) {
      const auto action = static_cast<uint16_t>(slot.trial.best());
      game_.apply(slot.state, action);
      slot.record.opening.push_back(action);
      ++slot.record.num_opening_plies;
    }
    slot.search.reset();
    begin_ply(slot);
  }

  // Without a simulation the search's policy is the network's.
  void finish_opening_ply(Slot& slot) {
    Rng rng = stream(slot, Purpose::kPolicyOpening);
    const int action = sample_action(result_, settings_.policy_opening_temperature, rng);
    --slot.num_opening_plies;
    typename G::State next = slot.state;
    game_.apply(next, action);
    if (game_.outcome(next) == Outcome::kOngoing) {
      slot.state = next;
      slot.record.opening.push_back(static_cast<uint16_t>(action));
      ++slot.record.num_opening_plies;
    } else {
      slot.num_opening_plies = 0;
    }
    slot.search.reset();
    begin_ply(slot);
  }

  // Whether the position that was searched is asked for its lead.
  bool draws_lead(const Slot& slot) const {
    if constexpr (HasKomi<G>) {
      Rng rng = stream(slot, Purpose::kLead);
      return slot.weight > 0.0f && rng.uniform() < settings_.lead_share;
    }
    return false;
  }

  void begin_lead_of(Slot& slot) {
    if constexpr (HasKomi<G>) {
      begin_lead(game_, slot.state, result_.root_value_to_play, slot.lead);
      go_on_with_lead(slot);
    }
  }

  void go_on_with_lead(Slot& slot) {
    if constexpr (HasKomi<G>) {
      if (slot.lead.is_waiting()) {
        const auto other = with_given(game_, slot.state, slot.lead.given_half_points());
        return begin_search(slot, other, settings_.lead_simulations, false);
      }
      slot.search.finish(result_);
      finish_ply(slot, static_cast<int16_t>(std::lround(kLeadsPerPoint * slot.lead.points())));
    }
  }

  void finish_ply(Slot& slot, int16_t lead) {
    const int ply = game_.ply(slot.state);
    const bool is_full = slot.weight > 0.0f;
    Rng rng = stream(slot, Purpose::kMoveChoice);
    // The Gumbel draw is the exploration of a Gumbel search.
    const bool drawn = settings_.search.policy == RootPolicy::kGumbel && is_full;
    const int action =
        drawn ? result_.best_action : sample_action(result_, move_temperature(settings_, ply), rng);
    slot.record.plies.push_back(record_ply(result_, action, slot.weight, weighs_by_surprise_));
    slot.record.plies.back().lead = lead;
    const float sign = game_.to_play(slot.state) == 0 ? 1.0f : -1.0f;
    slot.notes.push_back({sign * result_.root_value_to_play, sign * result_.network_value_to_play,
                          policy_surprise(result_)});
    stats_.num_plies += 1;
    game_.apply(slot.state, action);
    Outcome outcome = game_.outcome(slot.state);
    if constexpr (HasScore<G>) {
      if (outcome == Outcome::kOngoing && slot.may_settle && game_.is_settled(slot.state)) {
        outcome = outcome_of_score(game_.score(slot.state));
      }
    }
    if (outcome == Outcome::kOngoing && slot.may_resign) {
      outcome = resigned_outcome(settings_, slot.notes);
    }
    if (outcome == Outcome::kOngoing) {
      slot.search.play(action, scratch_);
      begin_ply(slot);
      return;
    }
    slot.record.outcome = outcome;
    finish_game(slot);
  }

  void finish_game(Slot& slot) {
    slot.idle = true;  // also where put() throws: the game is over and must not be played on
    if (weighs_by_surprise_) {
      weigh_by_surprise(settings_, slot.notes, board_area(game_, slot.state), slot.record);
    }
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

  Rng stream(const Slot& slot, Purpose purpose) const {
    return Rng(queue_->generation().seed, slot.record.generation, slot.record.game_index,
               static_cast<uint32_t>(game_.ply(slot.state)), purpose);
  }

  const G game_;
  SelfplaySettings settings_;
  const bool weighs_by_surprise_;
  std::shared_ptr<GameQueue> queue_;
  std::shared_ptr<GameSink> sink_;
  LeafServer<G> leaves_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Tree scratch_;
  SearchResult result_;
  WorkerStats stats_;  // of the driving thread alone
  std::vector<uint16_t> legal_;
  uint64_t num_snapshots_ = 0;
  mutable std::mutex published_mutex_;
  WorkerStats published_;  // for the others
};

}  // namespace tengen
