#pragma once
// Hands out the games of one generation, in order, each once.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "selfplay/settings.h"

namespace tengen {

// take() and stop() are thread-safe.
class GameQueue {
 public:
  static constexpr int64_t kNone = -1;

  explicit GameQueue(const Generation& generation)
      : generation_(generation), finished_(generation.num_games, false) {
    for (const uint32_t index : generation.finished) {
      if (index >= generation.num_games) {
        throw Error("finished game (" + std::to_string(index) + ") must be below num_games (" +
                    std::to_string(generation.num_games) + ")");
      }
      finished_[index] = true;
    }
  }

  // The next game to play, or kNone.
  int64_t take() {
    while (!stopped_.load(std::memory_order_relaxed)) {
      const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= generation_.num_games) return kNone;
      if (!finished_[index]) return static_cast<int64_t>(index);
    }
    return kNone;
  }

  // Ends the work: take() returns kNone and every worker drops its unfinished games.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  const Generation& generation() const { return generation_; }
  // Games that it was made to hand out.
  size_t num_wanted() const {
    return static_cast<size_t>(std::count(finished_.begin(), finished_.end(), false));
  }

 private:
  Generation generation_;
  std::vector<bool> finished_;
  // Idle slots go on asking after the last game: 64 bits never wrap to game 0.
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace tengen
