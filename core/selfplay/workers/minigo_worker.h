#pragma once
// Self-play with the search of the MLPerf benchmark minigo (search/minigo/minigo_search.h). Each
// slot plays a game, as in worker.h, and a batch contains several leaves per game. A game depends
// only on its index. Source: MLPerf training v2.1, minigo.
//
// The tree is reused from ply to ply. A fast ply searches it further, without noise, and gives no
// row. With fast plies, a full ply starts with an empty tree and makes one more simulation for each
// visit that its root would have kept; a restart can resume the game there.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "search/minigo/minigo_search.h"
#include "selfplay/leaves/leaves_server.h"
#include "selfplay/plies/minigo_choice.h"
#include "selfplay/plies/move_choice.h"
#include "selfplay/workers/game_worker.h"

namespace tengen {

template <Game G>
struct MinigoSlot : GameSlot<G> {
  MinigoSlot(const G& game, const SelfplaySettings& settings)
      : search(game, settings.search, settings.may_pass),
        passes(settings.restrict_pass_alive_after) {}
  MinigoSearch<G> search;
  PassRuns passes;
  float resigns_below = -1.0f;
  bool is_full = false;  // whether the current ply is a full ply, which gives a row
};

template <Game G>
class MinigoWorker final : public GameWorker<G, MinigoSlot<G>, LeavesServer<G, MinigoSearch<G>>> {
  using Base = GameWorker<G, MinigoSlot<G>, LeavesServer<G, MinigoSearch<G>>>;
  using Slot = MinigoSlot<G>;

 public:
  MinigoWorker(const G& game, const SelfplaySettings& settings, std::shared_ptr<GameQueue> queue,
               std::shared_ptr<GameSink> sink)
      : Base(game, settings, std::move(queue), std::move(sink), settings.num_slots,
             settings.search.minigo_virtual_losses, settings.cache_bytes),
        alive_(game) {
    for (int i = 0; i < settings.num_slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(game_, settings));
    }
  }

 private:
  using Base::game_, Base::settings_, Base::queue_, Base::leaves_, Base::slots_, Base::scratch_;
  using Base::result_, Base::stats_;

  void run(Slot& slot) override {
    if (slot.search.is_waiting()) return;
    while (!slot.idle || start_game(slot)) {
      const int before = slot.search.num_simulations();
      const bool is_over = leaves_.run(slot.search, stats_);
      stats_.num_simulations += static_cast<uint64_t>(slot.search.num_simulations() - before);
      if (!is_over) return;
      slot.search.finish(result_);
      finish_ply(slot);
    }
  }

  bool start_game(Slot& slot) {
    const std::optional<uint32_t> index = this->take_game(slot);
    if (!index) return false;
    slot.search.reset();
    slot.passes.clear();
    uint32_t num_kept_visits = 0;
    if (const UnfinishedGame* begun = queue_->begun(*index)) {
      this->go_on(slot, *begun);
      count_passes(slot);
      num_kept_visits = begun->num_extra_simulations;
    } else if (!this->begin_book_opening(slot)) {
      this->begin_random_opening(slot);
    }
    slot.resigns_below =
        resignation_value(settings_, this->game_stream(slot, Purpose::kResignation));
    this->draw_settlement(slot);
    begin_ply(slot, num_kept_visits);
    return true;
  }

  // Counts the passes in the searched plies of a resumed game.
  void count_passes(Slot& slot) {
    auto state = initial_state_of(game_, slot.record.variant);
    for (const uint16_t action : slot.record.opening) game_.apply(state, action);
    for (const PlyRecord& ply : slot.record.plies) {
      slot.passes.add(game_.to_play(state), ply.action == pass_of(game_));
      game_.apply(state, ply.action);
    }
  }

  // Begins a ply. `num_kept_visits`: root visits that the reused tree has, or would have had.
  void begin_ply(Slot& slot, uint32_t num_kept_visits) {
    const bool is_first = slot.record.plies.empty();
    Rng rng = this->stream(slot, Purpose::kPlayoutCap);
    slot.is_full = is_first || rng.uniform() < settings_.full_probability;
    int num_simulations = slot.is_full ? settings_.full_simulations : settings_.cheap_simulations;
    if (slot.is_full && settings_.full_probability < 1.0f) {
      slot.search.reset();
      slot.num_extra_simulations = num_kept_visits;
      slot.num_resumable_plies = slot.record.plies.size();
      num_simulations = static_cast<int>(
          std::min(num_simulations + uint64_t{num_kept_visits}, uint64_t{kMaxSimulations}));
    }
    slot.search.begin(slot.state,
                      this->request_of(slot, slot.state, num_simulations, slot.is_full));
  }

  void finish_ply(Slot& slot) {
    const int to_play = game_.to_play(slot.state);
    stats_.num_plies += 1;
    if (result_.root_value_to_play < slot.resigns_below) {
      slot.record.outcome = to_play == 0 ? Outcome::kSecondWins : Outcome::kFirstWins;
      return this->put_game(slot);
    }
    const bool is_drawn = game_.ply(slot.state) < settings_.soft_pick_plies;
    alive_.read(game_, slot.state, slot.passes.restricts(to_play));
    Rng rng = this->stream(slot, Purpose::kMoveChoice);
    const double exponent = settings_.soft_pick_exponent;
    const int action = is_drawn ? draw_point(game_, slot.search, result_, exponent, rng)
                                : best_allowed(game_, slot.search, result_, alive_);
    if (slot.is_full) {
      if (!settings_.prunes_target) {
        take_visits(result_);
        alive_.read(game_, slot.state, false);
      }
      make_target(game_, alive_, is_drawn, exponent, result_);
    }
    const float weight = slot.is_full ? 1.0f : 0.0f;
    slot.record.plies.push_back(record_ply(result_, action, weight, false));
    const float sign = to_play == 0 ? 1.0f : -1.0f;
    slot.notes.push_back(
        {sign * result_.root_value_to_play, sign * result_.network_value_to_play, 0.0f});
    slot.passes.add(to_play, action == pass_of(game_));
    slot.search.play(action, scratch_);
    game_.apply(slot.state, action);
    slot.record.outcome = this->outcome_of(slot);
    if (slot.record.outcome != Outcome::kOngoing) return this->put_game(slot);
    begin_ply(slot, slot.search.root_visits());
  }

  PassAlivePoints<G> alive_;  // the pass-alive points of the ply that is being finished
};

}  // namespace tengen
