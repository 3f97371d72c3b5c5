#pragma once
// A GameSink in memory, for a process that sends its games to the journal of another process.

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "records/game_sink.h"

namespace tengen {

// Collects encoded games in memory, where they are not durable. Thread-safe.
class GameFrames final : public GameSink {
 public:
  void put(const GameRecord& record) override {
    std::string frame = encode(record);
    const std::scoped_lock lock(mutex_);
    frames_.push_back(std::move(frame));
  }

  // Removes and returns the encoded games, in order of completion.
  std::vector<std::string> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(frames_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> frames_;
};

}  // namespace tengen
