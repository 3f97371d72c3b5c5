#pragma once
// Where finished games go. The self-play engine knows this and nothing else of the store.

#include "records/game_record.h"

namespace tengen {

class GameSink {
 public:
  virtual ~GameSink() = default;
  // Takes one finished game. Thread-safe. May block while the sink is behind; throws Error
  // where the game cannot be kept (a full disk), after which the game is the caller's again.
  virtual void put(const GameRecord& record) = 0;
};

}  // namespace tengen
