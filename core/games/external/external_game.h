#pragma once
// A game that is played outside the core, presented as a Game, so that searches, self-play, matches
// and rows use the same code as for native games.
//
// Each position is requested from the source once, and then stores the known positions after its
// moves. A descent replays its path from the root, so at most its last move needs the source:
// is_known() tells whether a move does, resolve() makes many unknown moves in one call, and apply()
// makes a single move.
//
// Memory: a state keeps its position and that position's known descendants alive, but no ancestors.
// A game therefore holds the positions searched below its current position, at most one per
// simulation, and playing a move frees every other branch. Unlike in native games, a State is a
// reference, and making an unknown move allocates.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "games/decisive.h"
#include "games/external/state_source.h"
#include "games/game.h"

namespace tengen {

// A 128-bit hash of `num_values` plane entries.
Key128 planes_key(const float* planes, size_t num_values);

// Allocates the IDs of positions; reuses the most recently freed ID first. Thread-safe.
class PositionIds {
 public:
  static constexpr int32_t kInitial = 0;
  static constexpr int32_t kNone = -1;  // the ID of positions that the source does not store

  int32_t take();
  void give_back(int32_t id);

 private:
  std::mutex mutex_;
  std::vector<int32_t> free_;
  int32_t next_ = kInitial + 1;
};

struct ExternalPosition {
  ExternalPosition(std::shared_ptr<PositionIds> numbers, int32_t number)
      : ids(std::move(numbers)), id(number) {}
  ~ExternalPosition();
  ExternalPosition(const ExternalPosition&) = delete;
  ExternalPosition& operator=(const ExternalPosition&) = delete;

  std::shared_ptr<PositionIds> ids;
  int32_t id;
  int ply = 0;
  Key128 key;
  PositionFacts facts;
  // The positions after each of facts.legal, null while unknown; empty before the first lookup.
  std::vector<std::shared_ptr<ExternalPosition>> children;
};

// An external game. Copies share one source. Only one thread at a time may use the states that
// descend from one initial_state() call; other states are independent.
class ExternalGame {
 public:
  struct State {
    std::shared_ptr<ExternalPosition> position;
  };
  struct Move {
    State state;
    uint16_t action;
  };

  // Requests the initial position from the source.
  explicit ExternalGame(std::shared_ptr<StateSource> source);

  std::string name() const { return rules_->name; }
  int num_actions() const { return rules_->num_actions; }
  int num_planes() const { return rules_->num_planes; }
  int height() const { return rules_->height; }
  int width() const { return rules_->width; }
  int max_plies() const { return rules_->max_plies; }
  PolicyLayout policy_layout() const { return rules_->policy_layout; }
  int num_symmetries() const { return rules_->num_symmetries; }

  // Returns a new position on each call, so that games share no memory.
  State initial_state() const;
  int to_play(const State& state) const { return state.position->facts.to_play; }
  int ply(const State& state) const { return state.position->ply; }
  Outcome outcome(const State& state) const { return state.position->facts.outcome; }
  int legal_actions(const State& state, uint16_t* actions) const;
  Decisive decisive_actions(const State& state, uint16_t* actions) const;
  bool is_legal(const State& state, int action) const;
  // Makes a move. Throws Error if the action is illegal; exceptions of the source propagate.
  void apply(State& state, int action) const;
  Key128 key(const State& state) const { return state.position->key; }
  // Precondition: the game has not ended.
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State&, int symmetry) const {
    return rules_->action_image.data() + symmetry * rules_->num_actions;
  }
  std::string to_string(const State& state) const { return source_->to_string(state.position->id); }

  // Whether apply() can make the move without the source. Precondition: the action is legal.
  bool is_known(const State& state, int action) const;
  // Requests the positions after `moves` with one call to the source.
  void resolve(std::span<const Move> moves) const;
  // Returns the position after `actions`, which must be legal, from the initial position. The
  // result accepts no moves. Recent results are cached, up to kMaxKeptBytes. Thread-safe.
  State state_after(std::span<const uint16_t> actions) const;
  // Plays uniformly random moves from an unfinished position and returns the outcome.
  Outcome playout(const State& state, Rng& rng) const {
    return source_->playout(state.position->id, rng);
  }

 private:
  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;

  struct KeyHash {
    size_t operator()(const Key128& key) const { return static_cast<size_t>(key.lo); }
  };
  // A cache of two generations. When `newer` is full, it replaces `older`.
  struct Kept {
    std::mutex mutex;
    std::unordered_map<Key128, State, KeyHash> newer, older;
  };

  std::shared_ptr<ExternalPosition> make_position(int32_t id, size_t ply,
                                                  PositionFacts facts) const;

  std::shared_ptr<StateSource> source_;
  const ExternalRules* rules_;
  std::shared_ptr<PositionIds> ids_;
  std::shared_ptr<const ExternalPosition> initial_;
  std::shared_ptr<Kept> kept_;
};

static_assert(HasDecisive<ExternalGame> && ExternallyPlayed<ExternalGame>);

}  // namespace tengen
