#pragma once
// Matches: many concurrent games between two players. A player is a network search, mcts:N, random,
// or external. Games 2k and 2k + 1 share one opening with exchanged colours. An opening is one from
// the queue's book, if it has a book, and then random plies; every book opening is used before one
// repeats. If a player searches with minigo, a game also ends when the final owner of every cell is
// settled. A player may resign. Each thread has its own Match. All threads of a match take games
// from one queue in order of index, so that all games below the index of a running game are
// finished or running.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "inference/port.h"
#include "search/uct/uct.h"
#include "selfplay/match/match_seat.h"
#include "selfplay/match/match_settings.h"
#include "selfplay/openings/opening.h"
#include "selfplay/queue/game_queue.h"

namespace tengen {

struct MatchGame {
  uint32_t index;
  int first_player;  // 0 or 1: the player who moves first
  Outcome outcome;
  std::vector<uint16_t> moves;  // including the opening
  uint16_t num_opening_plies;

  // The result for player 0, in {-1, 0, 1}.
  float value_of_player0() const {
    return first_player == 0 ? value_to_first(outcome) : -value_to_first(outcome);
  }
};

// A game that waits for an external move.
struct MatchTurn {
  uint32_t index;
  std::vector<uint16_t> moves;  // all moves so far, including the opening
};

// One thread's games. Drive port(0) and port(1) alternately, each with its player's backend:
//
//   while (!match.finished())
//     for (p : {0, 1}) {
//       if (n = port(p).next()) { evaluate n rows; port(p).done(); }
//       for (turn : turns(p)) play(turn.index, action);
//     }
class MatchRunner {
 public:
  virtual ~MatchRunner() = default;
  virtual Port& port(int player) = 0;
  // Returns the games that wait for a move of `player`; empty unless the player is kOutside.
  virtual std::vector<MatchTurn> turns(int player) const = 0;
  // Makes the move that game `index` waits for. Throws Error if the game waits for no move or the
  // move is illegal.
  virtual void play(uint32_t index, int action) = 0;
  // Ends game `index` as a loss for the player to move. Throws Error if no move is due.
  virtual void resign(uint32_t index) = 0;
  // Whether the queue is empty and every game taken from it is finished, or the queue has been
  // stopped, which drops unfinished games.
  virtual bool finished() const = 0;
  // Returns the games that have finished, in order of completion.
  virtual const std::vector<MatchGame>& games() const = 0;
};

template <Game G>
class Match final : public MatchRunner {
 public:
  // The queue provides the seed and the number of games.
  Match(const G& game, const MatchSettings& settings, std::shared_ptr<GameQueue> queue)
      : game_(game),
        settings_(settings),
        queue_(std::move(queue)),
        slots_(static_cast<size_t>(settings.num_slots)),
        ends_settled_(is_minigo(settings.players[0]) || is_minigo(settings.players[1])) {
    legal_.resize(static_cast<size_t>(game_.num_actions()));
    for (const int player : {0, 1}) {
      seats_[player] = make_seat<G>(game_, settings_, player, [this, player] { run_all(player); });
    }
  }

  Port& port(int player) override { return *seats_[player]; }
  std::vector<MatchTurn> turns(int player) const override {
    std::vector<MatchTurn> turns;
    if (settings_.players[player].kind != MatchPlayer::Kind::kOutside) return turns;
    for (const Slot& slot : slots_) {
      if (slot.idle || mover(slot) != player) continue;
      turns.push_back({slot.game.index, slot.game.moves});
    }
    return turns;
  }
  void play(uint32_t index, int action) override {
    Slot& slot = slot_of_turn(index);
    if (!game_.is_legal(slot.state, action)) {
      throw Error("action (" + std::to_string(action) + ") must be legal in game " +
                  std::to_string(index) + "; choose another");
    }
    play(slot, action);
  }
  void resign(uint32_t index) override { resign(slot_of_turn(index)); }
  bool finished() const override {
    if (queue_->stopped()) return true;
    return queue_->empty() &&
           std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.idle; });
  }
  const std::vector<MatchGame>& games() const override { return games_; }

 private:
  struct Slot {
    typename G::State state{};
    MatchGame game{};
    bool idle = true;
    int num_lost[2] = {};  // each player's latest searches in a row below resign_below
  };

  static bool is_minigo(const MatchPlayer& player) {
    return player.kind == MatchPlayer::Kind::kNetwork &&
           player.search.policy == RootPolicy::kMinigo;
  }

  int place_of(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }

  void run_all(int player) {
    for (Slot& slot : slots_) run(slot, player);
  }

  // Plays the slot's game while `player` is to move, until the player's search must wait.
  void run(Slot& slot, int player) {
    if (seats_[player]->is_waiting(place_of(slot))) return;
    while (!queue_->stopped()) {
      if (slot.idle && !start_game(slot)) return;
      if (mover(slot) != player) return;
      const MatchPlayer& who = settings_.players[player];
      if (who.kind == MatchPlayer::Kind::kOutside) return;
      const Rng rng(seed(), 0, slot.game.index, static_cast<uint32_t>(game_.ply(slot.state)),
                    Purpose::kRollout);
      int action = 0;
      if (who.kind == MatchPlayer::Kind::kNetwork) {
        action =
            seats_[player]->think(place_of(slot), slot.state, {seed(), slot.game.index, player});
        if (action == MatchSeat<G>::kNone) return;
        if (resigns(slot, player)) {
          resign(slot);
          continue;
        }
      } else if (who.kind == MatchPlayer::Kind::kMcts) {
        action = Uct<G>(game_, who.num_simulations).choose(slot.state, rng);
      } else {
        const int n = game_.legal_actions(slot.state, legal_.data());
        action = legal_[Rng(rng).below(static_cast<uint32_t>(n))];
      }
      play(slot, action);
    }
  }

  bool start_game(Slot& slot) {
    const int64_t index = queue_->take();
    if (index == GameQueue::kNone) return false;
    slot.game = {};
    slot.game.index = static_cast<uint32_t>(index);
    slot.game.first_player = static_cast<int>(slot.game.index & 1);
    slot.state = game_.initial_state();
    const auto& openings = queue_->generation().openings;
    if (!openings.empty()) {
      const auto num_openings = static_cast<uint32_t>(openings.size());
      const uint32_t pair = slot.game.index / 2;
      const Permutation order(seed(), num_openings);
      slot.game.moves = openings[order(pair % num_openings)];
      play_book_opening(game_, slot.state, slot.game.moves);
    }
    Rng rng(seed(), 0, slot.game.index / 2, 0, Purpose::kOpening);
    play_opening(game_, slot.state, static_cast<uint32_t>(settings_.num_opening_plies), rng,
                 legal_.data(), slot.game.moves);
    slot.game.num_opening_plies = static_cast<uint16_t>(slot.game.moves.size());
    for (auto& seat : seats_) seat->reset(place_of(slot));
    for (int& num_lost : slot.num_lost) num_lost = 0;
    slot.idle = false;
    return true;
  }

  // Counts a search of `player`; returns whether the player resigns instead of moving.
  bool resigns(Slot& slot, int player) const {
    const bool is_lost = seats_[player]->value() < settings_.players[player].resign_below;
    slot.num_lost[player] = is_lost ? slot.num_lost[player] + 1 : 0;
    return slot.num_lost[player] == kResignMoves;
  }

  void resign(Slot& slot) {
    end(slot, game_.to_play(slot.state) == 0 ? Outcome::kSecondWins : Outcome::kFirstWins);
  }

  void play(Slot& slot, int action) {
    game_.apply(slot.state, action);
    slot.game.moves.push_back(static_cast<uint16_t>(action));
    const Outcome outcome = outcome_of(slot.state);
    if (outcome != Outcome::kOngoing) return end(slot, outcome);
    for (auto& seat : seats_) seat->play(place_of(slot), action, scratch_);
  }

  Outcome outcome_of(const typename G::State& state) const {
    if constexpr (HasScore<G>) {
      if (ends_settled_ && game_.is_settled(state)) return outcome_of_score(game_.score(state));
    }
    return game_.outcome(state);
  }

  void end(Slot& slot, Outcome outcome) {
    slot.game.outcome = outcome;
    games_.push_back(slot.game);
    slot.idle = true;
  }

  Slot& slot_of_turn(uint32_t index) {
    for (Slot& slot : slots_) {
      if (!slot.idle && slot.game.index == index && waits_for_outside(slot)) return slot;
    }
    throw Error("game (" + std::to_string(index) + ") must wait for a move; see turns()");
  }

  bool waits_for_outside(const Slot& slot) const {
    return settings_.players[mover(slot)].kind == MatchPlayer::Kind::kOutside;
  }

  int mover(const Slot& slot) const {
    return game_.to_play(slot.state) == 0 ? slot.game.first_player : 1 - slot.game.first_player;
  }

  uint64_t seed() const { return queue_->generation().seed; }

  const G game_;
  MatchSettings settings_;
  const std::shared_ptr<GameQueue> queue_;
  std::vector<Slot> slots_;
  const bool ends_settled_;  // whether games also end when all owners are settled
  std::unique_ptr<MatchSeat<G>> seats_[2];
  std::vector<MatchGame> games_;
  std::vector<uint16_t> legal_;
  Tree scratch_;
};

}  // namespace tengen
