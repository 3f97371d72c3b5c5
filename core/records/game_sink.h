#pragma once
// The interface through which self-play stores finished games.

#include "records/game_record.h"

namespace tengen {

class GameSink {
 public:
  virtual ~GameSink() = default;
  // Stores one finished game. Thread-safe. May block until earlier games are stored. Throws Error
  // if the game cannot be stored, for example on a full disk. The caller then keeps `record`.
  virtual void put(const GameRecord& record) = 0;
};

}  // namespace tengen
