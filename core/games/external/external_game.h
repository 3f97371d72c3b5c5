#pragma once
// A game that is played outside the core, presented as a Game: searches, self-play, matches and
// rows use the same code as for native games.
//
// Each position is requested once. It then stores the positions after moves that were made from it.
// So a descent, which replays its path from the root, leaves the core at most for its last move:
// is_known() tells in advance, resolve() makes many such moves in one call, and apply() makes a
// single unknown one itself.
//
// Memory: a state keeps alive its position and the known ones below it, nothing above. So a game in
// a slot holds what was searched below its current position, at most one position per simulation;
// playing a move frees every other branch. Differs from native games: a State is a reference, and
// making an unknown move allocates.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"
#include "games/external/state_source.h"
#include "games/game.h"

namespace tengen {

// A 128-bit hash of `num_values` plane entries.
Key128 planes_key(const float* planes, size_t num_values);

// Ids of positions; freed ids are reused, smallest first. Thread-safe.
class PositionIds {
 public:
  static constexpr int32_t kInitial = 0;
  static constexpr int32_t kNone = -1;  // of a position that the source does not store

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
  // Known positions, indexed like facts.legal; empty before the first one.
  std::vector<std::shared_ptr<ExternalPosition>> children;
};

// Copies share one source. Threads: states from the same initial_state() may be used by one thread
// at a time; others are independent.
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

  // A separate position each time, so that games share no memory.
  State initial_state() const;
  int to_play(const State& state) const { return state.position->facts.to_play; }
  int ply(const State& state) const { return state.position->ply; }
  Outcome outcome(const State& state) const { return state.position->facts.outcome; }
  int legal_actions(const State& state, uint16_t* actions) const;
  bool is_legal(const State& state, int action) const;
  // Throws Error if the action is illegal; exceptions of the source propagate.
  void apply(State& state, int action) const;
  Key128 key(const State& state) const { return state.position->key; }
  // Precondition: the game is not over.
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State&, int symmetry) const {
    return rules_->action_image.data() + symmetry * rules_->num_actions;
  }
  std::string to_string(const State& state) const { return source_->to_string(state.position->id); }

  // Whether apply() would not call the source. Precondition: the action is legal.
  bool is_known(const State& state, int action) const;
  // Makes these moves known, in one call of the source.
  void resolve(std::span<const Move> moves) const;
  // The position after legal actions from the start, read-only: no move can be made from it. The
  // most recent ones are cached, up to kMaxKeptBytes. Thread-safe.
  State state_after(std::span<const uint16_t> actions) const;
  // The result of uniformly random play from an unfinished position.
  Outcome playout(const State& state, Rng& rng) const {
    return source_->playout(state.position->id, rng);
  }

 private:
  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;

  struct KeyHash {
    size_t operator()(const Key128& key) const { return static_cast<size_t>(key.lo); }
  };
  // A cache in two halves: when the newer is full it becomes the older, and the older is dropped.
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

static_assert(Game<ExternalGame> && ExternallyPlayed<ExternalGame>);

}  // namespace tengen
