#pragma once
// The source of positions of a game that is played outside the core, for example in Python. The
// core identifies positions by number; the source stores the actual state behind each number.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "games/game.h"

namespace tengen {

// The fixed properties of the game. Letters: S symmetries, A actions, N = planes * height * width.
struct ExternalRules {
  std::string name;
  int num_actions = 0;
  int num_planes = 0;
  int height = 0;
  int width = 0;
  int max_plies = 0;
  PolicyLayout policy_layout = PolicyLayout::kFlat;
  int num_symmetries = 1;
  std::vector<uint16_t> action_image;  // [S, A] the image of each action
  std::vector<uint32_t> plane_origin;  // [S, N] the source index of each plane entry
};

// Everything that the core needs to know about a position.
struct PositionFacts {
  uint8_t to_play = 0;
  Outcome outcome = Outcome::kOngoing;
  std::vector<uint16_t> legal;  // increasing; empty if the game is over
  std::vector<float> planes;    // [N]; empty if the game is over
};

// The move from position number `parent` that leads to the position with id `child`.
struct ExternalMove {
  int32_t parent;
  uint16_t action;
  int32_t child;
};

// Id 0 is the initial position. Other ids are reused when their position is freed, and the source
// then drops what it stored there. Every method validates the game's answers and throws if they
// break the protocol. Thread-safe; may block on a lock of the language behind it.
class StateSource {
 public:
  virtual ~StateSource() = default;
  virtual const ExternalRules& rules() const = 0;
  // Makes all the moves in one call; facts[i] is the result of moves[i].
  virtual void expand(std::span<const ExternalMove> moves, std::span<PositionFacts> facts) = 0;
  // The position after `actions` from the start, which must be legal; stored with this id, or not
  // stored if the id is negative.
  virtual PositionFacts replay(std::span<const uint16_t> actions, int32_t id) = 0;
  // The result of uniformly random play from an unfinished position: every move is
  // legal[rng.below(number of legal)].
  virtual Outcome playout(int32_t id, Rng& rng) = 0;
  virtual std::string to_string(int32_t id) = 0;
};

}  // namespace tengen
