#pragma once
// The greatest priority of late, for new items whose priority nobody knows yet.

#include <algorithm>
#include <cstdint>

namespace tengen::store::engine {

// Of the priorities that were set, the greatest of the last ones: of one to two times as many as
// the table has items, so that one outlier does not rank all later items. A priority that an item
// was inserted with counts only until one is set, and after a restart again: a new item that is
// given the greatest would otherwise keep it the greatest for ever.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", algorithm 1. Differs: there it never
// falls.
class GreatestPriority {
 public:
  void insert(double priority) { inserted_ = std::max(inserted_, priority); }
  void set(double priority, uint64_t table_size) {
    now_ = std::max(now_, priority);
    has_set_ = true;
    if (++num_set_ < std::max(kLeast, table_size)) return;
    before_ = now_;
    now_ = 0.0;
    num_set_ = 0;
  }
  // 0 where there was no priority.
  double value() const { return has_set_ ? std::max(now_, before_) : inserted_; }

 private:
  static constexpr uint64_t kLeast = 1000;

  double inserted_ = 0.0;
  double now_ = 0.0;     // of the last num_set_
  double before_ = 0.0;  // of those before them
  uint64_t num_set_ = 0;
  bool has_set_ = false;
};

}  // namespace tengen::store::engine
