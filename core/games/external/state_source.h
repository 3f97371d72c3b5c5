#pragma once
// Where the positions of a game come from that is played outside the core, as in Python. The core
// names positions by number; the source keeps what it likes behind each number.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "games/game.h"

namespace tengen {

// What is fixed. Letters: S symmetries, A actions, N = planes * height * width.
struct ExternalRules {
  std::string name;
  int num_actions = 0;
  int num_planes = 0;
  int height = 0;
  int width = 0;
  int max_plies = 0;
  PolicyLayout policy_layout = PolicyLayout::kFlat;
  int num_symmetries = 1;
  std::vector<uint16_t> action_image;  // [S, A] the action that an action becomes
  std::vector<uint32_t> plane_origin;  // [S, N] the entry that comes to stand at an entry
};

// Everything that the core asks of a position.
struct PositionFacts {
  uint8_t to_play = 0;
  Outcome outcome = Outcome::kOngoing;
  std::vector<uint16_t> legal;  // increasing; empty in a finished position
  std::vector<float> planes;    // [N]; empty in a finished position
};

// The move of position number `parent` that leads to the position to be known as `child`.
struct ExternalMove {
  int32_t parent;
  uint16_t action;
  int32_t child;
};

// Number 0 is the initial position; other numbers come up again when their position is gone, and
// the source then forgets what it had there. Every method checks what the game answers and throws
// where it breaks the protocol. Thread-safe; may block on a lock of the language behind it.
class StateSource {
 public:
  virtual ~StateSource() = default;
  virtual const ExternalRules& rules() const = 0;
  // Makes all the moves at once; facts[i] is filled for moves[i].
  virtual void expand(std::span<const ExternalMove> moves, std::span<PositionFacts> facts) = 0;
  // The position after `actions`, known to be legal, from the start; to be known as `id`, or not to
  // be kept where that is negative.
  virtual PositionFacts replay(std::span<const uint16_t> actions, int32_t id) = 0;
  // The result of uniform random play from an unfinished position: every move is
  // legal[rng.below(number of legal)].
  virtual Outcome playout(int32_t id, Rng& rng) = 0;
  virtual std::string to_string(int32_t id) = 0;
};

}  // namespace tengen
