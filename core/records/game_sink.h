#pragma once
// The destination of finished games. Self-play depends on nothing else of the store.

#include "records/game_record.h"

namespace tengen {

class GameSink {
 public:
  virtual ~GameSink() = default;
  // Takes one finished game. Thread-safe. May block if the sink is behind. Throws Error if the game
  // cannot be stored (for example on a full disk); the caller then keeps it.
  virtual void put(const GameRecord& record) = 0;
};

}  // namespace tengen
