#pragma once
// Evaluations by position, bounded in bytes. A hit returns the very bits that a miss would: the
// evaluation is a pure function of the key (position, hence symmetry) and of the model, and the
// cache is cleared when the model changes.

#include <cstring>
#include <vector>

#include "base/hash.h"

namespace tengen {

// Two places a key; the older one gives way. Not thread-safe: one a worker.
class EvaluationCache {
 public:
  struct Entry {
    const float* policy;  // [num_actions] logits, as the backend wrote them
    float value;
  };

  EvaluationCache(size_t max_bytes, int num_actions)
      : num_actions_(static_cast<size_t>(num_actions)) {
    const size_t entry_bytes = sizeof(Tag) + (num_actions_ + 1) * sizeof(float);
    size_t num_sets = 1;
    while (2 * num_sets * kWays * entry_bytes <= max_bytes) num_sets *= 2;
    if (kWays * entry_bytes > max_bytes) num_sets = 0;
    mask_ = num_sets == 0 ? 0 : num_sets - 1;
    tags_.resize(num_sets * kWays);
    data_.resize(num_sets * kWays * (num_actions_ + 1));
  }

  bool find(const Key128& key, Entry* entry) {
    if (tags_.empty()) return false;
    const size_t set = (key.lo & mask_) * kWays;
    for (size_t way = set; way < set + kWays; ++way) {
      if (tags_[way].key != key || !tags_[way].used) continue;
      tags_[way].age = ++clock_;
      const float* data = data_.data() + way * (num_actions_ + 1);
      *entry = {data + 1, data[0]};
      return true;
    }
    return false;
  }

  void insert(const Key128& key, const float* policy, float value) {
    if (tags_.empty()) return;
    size_t victim = (key.lo & mask_) * kWays;
    for (size_t way = victim + 1; way < (key.lo & mask_) * kWays + kWays; ++way) {
      if (tags_[way].age < tags_[victim].age) victim = way;
    }
    tags_[victim] = {key, ++clock_, true};
    float* data = data_.data() + victim * (num_actions_ + 1);
    data[0] = value;
    std::memcpy(data + 1, policy, num_actions_ * sizeof(float));
  }

 private:
  static constexpr size_t kWays = 2;
  struct Tag {
    Key128 key;
    uint64_t age = 0;
    bool used = false;
  };

  size_t num_actions_;
  size_t mask_ = 0;
  uint64_t clock_ = 0;
  std::vector<Tag> tags_;
  std::vector<float> data_;
};

}  // namespace tengen
