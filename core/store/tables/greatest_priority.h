#pragma once
// The greatest of the last priorities, for new items whose priority nobody knows yet.

#include <algorithm>
#include <cstdint>

namespace tengen::store::engine {

// The greatest of the last N to 2 N priorities that were set, where N is the number of items, at
// least 1,000: so one outlier does not rank all later items. Until the first N were set, priorities
// of inserts count too. Later they do not: a new item that is given the greatest would keep it the
// greatest for ever.
//
// Source: Schaul et al. 2016, "Prioritized Experience Replay", algorithm 1. Differs: there it never
// falls.
class GreatestPriority {
 public:
  void insert(double priority) {
    if (!is_begun_) before_ = std::max(before_, priority);
  }
  void set(double priority, uint64_t table_size) {
    now_ = std::max(now_, priority);
    if (++num_set_ < std::max(kLeast, table_size)) return;
    before_ = now_;
    now_ = 0.0;
    num_set_ = 0;
    is_begun_ = true;
  }
  // 0 where there was no priority.
  double value() const { return std::max(now_, before_); }

 private:
  static constexpr uint64_t kLeast = 1000;

  double now_ = 0.0;     // of the last num_set_
  double before_ = 0.0;  // of those before them, at first of inserts
  uint64_t num_set_ = 0;
  bool is_begun_ = false;  // whether N were set
};

}  // namespace tengen::store::engine
