#pragma once
// Encoded finished games in memory: for a process that passes its games to another one's journal.

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

  // Returns the games since the last call, encoded, in order of completion.
  std::vector<std::string> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(frames_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> frames_;
};

}  // namespace tengen
