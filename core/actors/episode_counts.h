#pragma once
// Computes episode returns and lengths for N vectorized copies. Single-threaded.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

struct FinishedEpisode {
  double episode_return;  // undiscounted
  int64_t length;         // in steps, without reset steps
};

class EpisodeCounts {
 public:
  explicit EpisodeCounts(size_t num_copies) : current_(num_copies) {}

  size_t num_copies() const { return current_.size(); }

  // Adds one environment step of every copy. Termination or truncation ends an episode.
  // Precondition: each array has `num_copies()` values.
  void add(const float* reward, const bool* terminated, const bool* truncated,
           const bool* is_reset) {
    finished_.clear();
    num_resets_ = 0;
    for (size_t i = 0; i < current_.size(); ++i) {
      current_[i].episode_return += reward[i];
      current_[i].length += !is_reset[i];
      num_resets_ += is_reset[i];
      if (terminated[i] || truncated[i]) {
        finished_.push_back(current_[i]);
        current_[i] = {};
      }
    }
  }

  // Returns the number of copies whose last step was a reset step.
  size_t num_resets() const { return num_resets_; }
  const std::vector<FinishedEpisode>& finished() const { return finished_; }

 private:
  std::vector<FinishedEpisode> current_;
  std::vector<FinishedEpisode> finished_;
  size_t num_resets_ = 0;
};

}  // namespace tengen
