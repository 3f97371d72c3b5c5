#pragma once
// The source of positions of a game that is played outside the core, for example in Python. The
// core identifies positions by ID; the source stores the state of the position with each ID.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "games/decisive.h"
#include "games/game.h"

namespace tengen {

// The fixed properties of a game. Dimensions: S symmetries, A actions, N = planes * height * width.
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
  std::vector<uint32_t> plane_origin;  // [S, N] the index that each plane entry is copied from
};

// All data about a position that the core needs.
struct PositionFacts {
  uint8_t to_play = 0;
  Outcome outcome = Outcome::kOngoing;
  std::vector<uint16_t> legal;  // ascending; empty if the game has ended
  std::vector<float> planes;    // [N]; empty if the game has ended
  // The actions to consider, and what is decided; see games/decisive.h.
  std::vector<uint16_t> considered;
  Decisive decisive;
};

// The move `action` from the position with ID `parent` to the position with ID `child`.
struct ExternalMove {
  int32_t parent;
  uint16_t action;
  int32_t child;
};

// Provides positions. ID 0 is the initial position. Other IDs are reused after their position has
// been freed; the source then overwrites the stored state. Every method validates the game's values
// and throws if they break the protocol. Thread-safe; may block on a lock of the game's language.
class StateSource {
 public:
  virtual ~StateSource() = default;
  virtual const ExternalRules& rules() const = 0;
  // Makes all `moves`; facts[i] describes the position after moves[i].
  virtual void expand(std::span<const ExternalMove> moves, std::span<PositionFacts> facts) = 0;
  // Returns the position after `actions`, which must be legal, from the initial position. Stores
  // its state under `id` unless `id` is negative.
  virtual PositionFacts replay(std::span<const uint16_t> actions, int32_t id) = 0;
  // Plays uniformly random moves from an unfinished position and returns the outcome. Every move is
  // legal[rng.below(number of legal)].
  virtual Outcome playout(int32_t id, Rng& rng) = 0;
  virtual std::string to_string(int32_t id) = 0;
};

}  // namespace tengen
