#pragma once
// The destination of finished games. Self-play depends on no other part of the store.

#include "records/game_record.h"

namespace tengen {

class GameSink {
 public:
  virtual ~GameSink() = default;
  // Stores one finished game. Thread-safe. May block until earlier games are stored. Throws Error
  // if the game cannot be stored (for example on a full disk); the caller then keeps the game.
  virtual void put(const GameRecord& record) = 0;
};

}  // namespace tengen
