#pragma once
// Matches: many games at once between two players, each a network search, mcts:N, random, or one
// whose moves come from outside.
// Games 2k and 2k + 1 share one opening and exchange the players, so colours alternate: one of the
// book, each before any comes again, where the queue has one, and random plies after it.
// A thread has a Match of its own; those of one match take their games from one queue, in order of
// index, so that the games before any game that is played are finished or being played.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/permutation.h"
#include "base/rng.h"
#include "inference/port.h"
#include "search/search.h"
#include "search/uct.h"
#include "selfplay/game_queue.h"
#include "selfplay/leaf_server.h"
#include "selfplay/opening.h"

namespace tengen {

struct MatchPlayer {
  enum class Kind : uint8_t { kNetwork = 0, kMcts = 1, kRandom = 2, kOutside = 3 };
  Kind kind = Kind::kRandom;
  int num_simulations = 64;  // of a network search, or the playouts of mcts:N
  SearchSettings search;     // kNetwork; no noise, the strongest move is played
  // kNetwork: a search goes on from what is left of the tree of the move before, whose visits count
  // towards num_simulations.
  bool keeps_tree = false;
};

struct MatchSettings {
  MatchPlayer players[2];
  int num_slots = 16;
  int num_opening_plies = 2;
  uint64_t cache_bytes = 16ull << 20;
};

struct MatchGame {
  uint32_t index;
  int first_player;  // 0 or 1: who had the first move
  Outcome outcome;
  std::vector<uint16_t> moves;  // opening included
  uint16_t num_opening_plies;

  // Of player 0, in {-1, 0, 1}.
  float value_of_player0() const {
    return first_player == 0 ? value_to_first(outcome) : -value_to_first(outcome);
  }
};

// A game that waits for a move from outside.
struct MatchTurn {
  uint32_t index;
  std::vector<uint16_t> moves;  // so far, opening included
};

// Drive port(0) and port(1) in turn, each with its player's backend:
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
  // The games that wait for a move of `player`; none where the player is not kOutside.
  virtual std::vector<MatchTurn> turns(int player) const = 0;
  // Makes the move that a turn waits for. Throws Error where none does or it is illegal.
  virtual void play(uint32_t index, int action) = 0;
  // Whose move a turn waits for loses there and then. Throws Error where none does.
  virtual void resign(uint32_t index) = 0;
  // The queue is empty and every game taken from it was played, or the queue was stopped: then
  // unfinished games are dropped.
  virtual bool finished() const = 0;
  // Finished games so far, in the order of their ends.
  virtual const std::vector<MatchGame>& games() const = 0;
};

template <Game G>
class Match final : public MatchRunner {
 public:
  // The queue has the seed, and the number of games.
  Match(const G& game, const MatchSettings& settings, std::shared_ptr<GameQueue> queue)
      : game_(game),
        settings_(settings),
        queue_(std::move(queue)),
        ports_{PlayerPort(this, 0), PlayerPort(this, 1)} {
    legal_.resize(static_cast<size_t>(game_.num_actions()));
    for (int i = 0; i < settings.num_slots; ++i) {
      slots_.push_back(std::make_unique<Slot>(game_, settings_));
    }
  }

  Port& port(int player) override { return ports_[player]; }
  std::vector<MatchTurn> turns(int player) const override {
    std::vector<MatchTurn> turns;
    if (settings_.players[player].kind != MatchPlayer::Kind::kOutside) return turns;
    for (const auto& slot : slots_) {
      if (slot->idle || mover(*slot) != player) continue;
      turns.push_back({slot->game.index, slot->game.moves});
    }
    return turns;
  }
  void play(uint32_t index, int action) override {
    Slot& slot = slot_of_turn(index);
    if (!game_.is_legal(slot.state, action)) {
      throw Error("action (" + std::to_string(action) + ") must be legal in game " +
                  std::to_string(index) + "; play another");
    }
    play(slot, action);
  }
  void resign(uint32_t index) override {
    Slot& slot = slot_of_turn(index);
    end(slot, game_.to_play(slot.state) == 0 ? Outcome::kSecondWins : Outcome::kFirstWins);
  }
  bool finished() const override {
    if (queue_->stopped()) return true;
    return queue_->empty() &&
           std::all_of(slots_.begin(), slots_.end(), [](const auto& slot) { return slot->idle; });
  }
  const std::vector<MatchGame>& games() const override { return games_; }

 private:
  struct Slot {
    Slot(const G& rules, const MatchSettings& settings)
        : search{Search<G>(rules, settings.players[0].search),
                 Search<G>(rules, settings.players[1].search)} {}
    Search<G> search[2];
    typename G::State state{};
    MatchGame game{};
    bool idle = true;
    bool thinking = false;  // the mover's search has begun
  };

  class PlayerPort final : public Port {
   public:
    PlayerPort(Match* match, int player)
        : match_(match),
          player_(player),
          leaves_(match->game_, match->settings_.num_slots, match->settings_.cache_bytes,
                  match->settings_.players[player].search.score_weight > 0.0f,
                  match->settings_.players[player].search.root_symmetries) {}
    int next() override {
      return leaves_.fill([&] {
        for (auto& slot : match_->slots_) match_->run(*slot, player_, leaves_, stats_);
      });
    }
    void done() override { leaves_.answer(stats_); }
    BatchBuffers& buffers() override { return leaves_.buffers(); }

   private:
    Match* match_;
    int player_;
    LeafServer<G> leaves_;
    WorkerStats stats_;
  };

  // Plays the slot on while `player` is to move, until their search has to wait.
  void run(Slot& slot, int player, LeafServer<G>& leaves, WorkerStats& stats) {
    if (slot.search[player].is_waiting()) return;
    while (!queue_->stopped()) {
      if (slot.idle && !start_game(slot)) return;
      if (mover(slot) != player) return;
      const MatchPlayer& who = settings_.players[player];
      if (who.kind == MatchPlayer::Kind::kOutside) return;
      const Rng rng(seed(), 0, slot.game.index, static_cast<uint32_t>(game_.ply(slot.state)),
                    Purpose::kRollout);
      int action = 0;
      if (who.kind == MatchPlayer::Kind::kNetwork) {
        if (!slot.thinking) begin_search(slot, player);
        if (!leaves.run(slot.search[player], stats)) return;
        slot.search[player].finish(result_);
        slot.thinking = false;
        action = result_.best_action;
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
    for (auto& search : slot.search) search.reset();
    slot.idle = false;
    slot.thinking = false;
    return true;
  }

  void begin_search(Slot& slot, int player) {
    SearchRequest request;
    request.num_simulations = settings_.players[player].num_simulations;
    request.seed = seed();
    request.game = slot.game.index;
    request.ply = static_cast<uint32_t>(game_.ply(slot.state));
    if (!settings_.players[player].keeps_tree) slot.search[player].reset();
    slot.search[player].begin(slot.state, request);
    slot.thinking = true;
  }

  void play(Slot& slot, int action) {
    game_.apply(slot.state, action);
    slot.game.moves.push_back(static_cast<uint16_t>(action));
    const Outcome outcome = game_.outcome(slot.state);
    if (outcome != Outcome::kOngoing) return end(slot, outcome);
    for (int player = 0; player < 2; ++player) {
      if (settings_.players[player].keeps_tree) slot.search[player].play(action, scratch_);
    }
  }

  void end(Slot& slot, Outcome outcome) {
    slot.game.outcome = outcome;
    games_.push_back(slot.game);
    slot.idle = true;
  }

  Slot& slot_of_turn(uint32_t index) {
    for (auto& slot : slots_) {
      if (!slot->idle && slot->game.index == index && waits_for_outside(*slot)) return *slot;
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
  std::vector<std::unique_ptr<Slot>> slots_;
  PlayerPort ports_[2];
  std::vector<MatchGame> games_;
  std::vector<uint16_t> legal_;
  SearchResult result_;
  Tree scratch_;
};

}  // namespace tengen
