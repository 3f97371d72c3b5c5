#pragma once
// Hands out each game of a generation or match once, in order of index.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "selfplay/queue/unfinished.h"
#include "selfplay/settings.h"

namespace tengen {

// The queue of games to play. Thread-safe.
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
    double total = 0.0;
    for (const auto& [name, weight] : generation.variants) {
      if (!(weight > 0.0 && std::isfinite(weight))) {
        throw Error("weight (" + std::to_string(weight) + ") of variant (" + name +
                    ") must be above 0 and finite; leave the variant out");
      }
      variant_ends_.push_back(total += weight);
    }
    for (const std::string& bytes : generation.unfinished) {
      UnfinishedGame game = decode_unfinished_game(bytes);
      check(game.record.generation == generation.generation, "unfinished game",
            game.record.game_index, "must be from this generation; leave it out");
      const uint32_t index = game.record.game_index;
      if (index >= generation.num_games || finished_[index]) continue;
      // Stores the state, which unfinished() returns until a worker continues the game.
      kept_.emplace(index, bytes);
      begun_.emplace(index, std::move(game));
    }
  }

  // Returns the next game to play, or kNone.
  int64_t take() {
    while (!stopped_.load(std::memory_order_relaxed)) {
      const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= generation_.num_games) return kNone;
      if (!finished_[index]) return static_cast<int64_t>(index);
    }
    return kNone;
  }

  // Whether all games have been handed out; some may still be in progress.
  bool empty() const { return next_.load(std::memory_order_relaxed) >= generation_.num_games; }

  // Returns the state from which game `index` continues, or null for a new game.
  const UnfinishedGame* begun(uint32_t index) const {
    const auto found = begun_.find(index);
    return found == begun_.end() ? nullptr : &found->second;
  }

  size_t num_begun() const { return begun_.size(); }

  // Requests every worker to keep() the states of its games soon. Does not wait.
  void request_snapshot() { num_snapshots_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t num_snapshots() const { return num_snapshots_.load(std::memory_order_relaxed); }
  void keep(const UnfinishedGame& game) {
    std::string bytes = encode(game);
    const std::lock_guard lock(kept_mutex_);
    kept_[game.record.game_index] = std::move(bytes);
  }
  // Drops the state of a finished game.
  void forget(uint32_t index) {
    const std::lock_guard lock(kept_mutex_);
    kept_.erase(index);
  }
  // Returns the latest states of unfinished games, encoded and sorted by index.
  std::vector<std::string> unfinished() const {
    const std::lock_guard lock(kept_mutex_);
    std::vector<std::string> games;
    for (const auto& [index, bytes] : kept_) games.push_back(bytes);
    return games;
  }

  // Returns the variant of game `index`, a pure function of index, seed and generation number.
  const std::string& variant(uint32_t index) const {
    static const std::string itself;
    if (variant_ends_.empty()) return itself;
    Rng rng(generation_.seed, generation_.generation, index, 0, Purpose::kVariant);
    const double drawn = rng.uniform() * variant_ends_.back();
    const auto found = std::upper_bound(variant_ends_.begin(), variant_ends_.end() - 1, drawn);
    return generation_.variants[static_cast<size_t>(found - variant_ends_.begin())].first;
  }

  // Stops the work: take() then returns kNone, and every worker drops its unfinished games.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  const Generation& generation() const { return generation_; }
  // The number of games to hand out, which excludes games finished before the queue was created.
  size_t num_wanted() const {
    return static_cast<size_t>(std::count(finished_.begin(), finished_.end(), false));
  }

 private:
  Generation generation_;
  std::vector<bool> finished_;
  std::vector<double> variant_ends_;  // cumulative weights of the variants
  std::map<uint32_t, UnfinishedGame> begun_;
  mutable std::mutex kept_mutex_;
  std::map<uint32_t, std::string> kept_;
  std::atomic<uint64_t> num_snapshots_{0};
  // The next game. Idle slots keep calling take() after the last game; 64 bits do not overflow.
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace tengen
