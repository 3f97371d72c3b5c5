#pragma once
// Finished games as bytes, until somebody takes them: for a process that has no journal of its own
// and hands its games to the one that has.

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "records/game_sink.h"

namespace tengen {

// Thread-safe. Nothing here is durable.
class GameFrames final : public GameSink {
 public:
  void put(const GameRecord& record) override {
    std::string frame = encode(record);
    const std::scoped_lock lock(mutex_);
    frames_.push_back(std::move(frame));
  }

  // The games since the last call, encoded, in the order in which they finished.
  std::vector<std::string> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(frames_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> frames_;
};

}  // namespace tengen
