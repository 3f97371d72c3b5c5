#pragma once
// A cache of network evaluations by position, with a limit in bytes. A hit is bitwise equal to a
// new evaluation, because an evaluation depends only on the model and the key (which also
// determines the symmetry), and the cache is cleared when the model changes.

#include <cstring>
#include <vector>

#include "base/hash.h"

namespace tengen {

// A 2-way set-associative cache that evicts the least recently used entry. Not thread-safe.
class EvaluationCache {
 public:
  struct Entry {
    const float* policy;  // [num_actions] logits, as returned by the network
    float value;
    const float* score;  // [2]; null if the cache has no scores
  };

  EvaluationCache(size_t max_bytes, int num_actions, bool has_score = false)
      : num_actions_(static_cast<size_t>(num_actions)),
        num_scores_(has_score ? 2 : 0),
        num_floats_(1 + num_actions_ + num_scores_) {
    const size_t entry_bytes = sizeof(Tag) + num_floats_ * sizeof(float);
    size_t num_sets = 1;
    while (2 * num_sets * kWays * entry_bytes <= max_bytes) num_sets *= 2;
    if (kWays * entry_bytes > max_bytes) num_sets = 0;
    mask_ = num_sets == 0 ? 0 : num_sets - 1;
    tags_.resize(num_sets * kWays);
    data_.resize(num_sets * kWays * num_floats_);
  }

  bool find(const Key128& key, Entry* entry) {
    if (tags_.empty()) return false;
    const size_t set = (key.lo & mask_) * kWays;
    for (size_t way = set; way < set + kWays; ++way) {
      if (tags_[way].key != key || !tags_[way].used) continue;
      tags_[way].age = ++clock_;
      const float* data = data_.data() + way * num_floats_;
      *entry = {data + 1, data[0], num_scores_ == 0 ? nullptr : data + 1 + num_actions_};
      return true;
    }
    return false;
  }

  // Inserts an evaluation. If the cache has no scores, ignores `score`.
  void insert(const Key128& key, const float* policy, float value, const float* score = nullptr) {
    if (tags_.empty()) return;
    size_t victim = (key.lo & mask_) * kWays;
    for (size_t way = victim + 1; way < (key.lo & mask_) * kWays + kWays; ++way) {
      if (tags_[way].age < tags_[victim].age) victim = way;
    }
    tags_[victim] = {key, ++clock_, true};
    float* data = data_.data() + victim * num_floats_;
    data[0] = value;
    std::memcpy(data + 1, policy, num_actions_ * sizeof(float));
    if (num_scores_ > 0) {
      std::memcpy(data + 1 + num_actions_, score, num_scores_ * sizeof(float));
    }
  }

 private:
  static constexpr size_t kWays = 2;
  struct Tag {
    Key128 key;
    uint64_t age = 0;
    bool used = false;
  };

  size_t num_actions_;
  size_t num_scores_;
  size_t num_floats_;  // floats per entry: value, policy, scores
  size_t mask_ = 0;
  uint64_t clock_ = 0;
  std::vector<Tag> tags_;
  std::vector<float> data_;
};

}  // namespace tengen
