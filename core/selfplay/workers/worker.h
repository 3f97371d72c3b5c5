#pragma once
// Self-play: the games of one thread as state machines. Each slot plays a game. next() runs every
// slot's search to its next leaf, so a batch holds at most one leaf per game and no search waits
// for another. A game depends only on its index, not on slots, threads or batches.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "search/serial/search.h"
#include "selfplay/decided/decided.h"
#include "selfplay/leaves/leaf_server.h"
#include "selfplay/openings/fork.h"
#include "selfplay/plies/lead.h"
#include "selfplay/plies/move_choice.h"
#include "selfplay/plies/surprise.h"
#include "selfplay/workers/game_worker.h"

namespace tengen {

template <Game G>
struct SearchedSlot : GameSlot<G> {
  SearchedSlot(const G& game, const SearchSettings& settings) : search(game, settings) {}
  Search<G> search;
  uint32_t num_opening_plies = 0;  // plies still to be sampled from the policy
  MoveTrial<G> trial;              // for a fork's first move
  LeadBisection lead;              // of the searched position
  std::optional<Search<G>>
      lead_search;  // searches the position with a different komi; does not change the slot's tree
  bool may_resign = false;
  float weight = 0.0f;  // row weight of the current ply; 0 if its search is cheap
};

template <Game G>
class SelfplayWorker final : public GameWorker<G, SearchedSlot<G>, LeafServer<G>> {
  using Base = GameWorker<G, SearchedSlot<G>, LeafServer<G>>;
  using Slot = SearchedSlot<G>;

 public:
  SelfplayWorker(const G& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
                 std::shared_ptr<GameSink> sink)
      : Base(game, settings, std::move(queue), std::move(sink), settings.num_slots,
             settings.cache_bytes, settings.search.score_weight > 0.0f,
             settings.search.root_symmetries),
        weighs_by_surprise_(settings.policy_surprise_share > 0.0f ||
                            settings.value_surprise_share > 0.0f) {
    for (int i = 0; i < settings.num_slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(game_, settings.search));
      if (HasKomi<G> && settings.lead_share > 0.0f) {
        slots_.back()->lead_search.emplace(game_, settings.search);
      }
    }
  }

 private:
  using Base::game_, Base::settings_, Base::queue_, Base::leaves_, Base::slots_, Base::scratch_;
  using Base::result_, Base::stats_, Base::legal_;

  void run(Slot& slot) override {
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
    const std::optional<uint32_t> index = this->take_game(slot);
    if (!index) return false;
    slot.search.reset();
    if (const UnfinishedGame* begun = queue_->begun(*index)) {
      slot.num_opening_plies = 0;
      slot.trial.clear();
      this->go_on(slot, *begun);
    } else {
      begin_game(slot);
    }
    Rng resignation = this->game_stream(slot, Purpose::kResignation);
    slot.may_resign =
        queue_->generation().may_resign && resignation.uniform() >= settings_.resign_playout_share;
    this->draw_settlement(slot);
    begin_ply(slot);
    return true;
  }

  void begin_game(Slot& slot) {
    const Generation& generation = queue_->generation();
    Rng fork_rng = this->game_stream(slot, Purpose::kFork);
    if (const auto fork = draw_fork(settings_, generation.fork_sources, fork_rng)) {
      return begin_fork(slot, generation.fork_sources[fork->source], *fork, fork_rng);
    }
    slot.num_opening_plies = 0;
    if (this->begin_book_opening(slot)) return;
    Rng rng = this->begin_random_opening(slot);
    slot.num_opening_plies = num_policy_plies(settings_.policy_opening_plies, rng);
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

  void begin_ply(Slot& slot) {
    if (slot.trial.is_waiting()) {
      typename G::State then = slot.state;
      game_.apply(then, slot.trial.move());
      return begin_search(slot, then, 0, false);
    }
    if (slot.num_opening_plies > 0) return begin_search(slot, slot.state, 0, false);
    Rng rng = this->stream(slot, Purpose::kPlayoutCap);
    if (rng.uniform() < settings_.full_probability) {
      const Effort effort = full_effort(settings_, slot.notes);
      slot.weight = effort.weight;
      // Starts a full search with an empty tree, so that noise affects every visit of its target.
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
    search_of(slot).begin(state, this->request_of(slot, state, num_simulations, explore));
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

  // Samples a ply from the search's policy, which without simulations is the network's policy.
  void finish_opening_ply(Slot& slot) {
    Rng rng = this->stream(slot, Purpose::kPolicyOpening);
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

  // Decides at random whether to estimate the lead of the searched position.
  bool draws_lead(const Slot& slot) const {
    if constexpr (HasKomi<G>) {
      Rng rng = this->stream(slot, Purpose::kLead);
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
    Rng rng = this->stream(slot, Purpose::kMoveChoice);
    // In a Gumbel search, the Gumbel noise provides the exploration.
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
    Outcome outcome = this->outcome_of(slot);
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
    if (weighs_by_surprise_) {
      weigh_by_surprise(settings_, slot.notes, board_area(game_, slot.state), slot.record);
    }
    this->put_game(slot);
  }

  const bool weighs_by_surprise_;
};

}  // namespace tengen
