#pragma once
// Limits how far samples may run ahead of inserts, and inserts ahead of samples.
//
// Source: Cassirer et al. 2021, "Reverb: a framework for experience replay" (arXiv:2102.04736),
// section 3.3.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.h"

namespace tengen::store::engine {

// The limits of a rate limiter. With cursor = inserts * samples_per_insert - samples, the cursor
// must be at most max_cursor after an insert, and at least min_cursor after a sample. While the
// table has fewer than min_size items, all inserts and no samples are allowed.
struct RateLimits {
  double samples_per_insert = 1.0;
  uint64_t min_size = 1;
  double min_cursor = -std::numeric_limits<double>::infinity();
  double max_cursor = std::numeric_limits<double>::infinity();
};

// Decides how many inserts and samples a table allows. Not thread-safe; never waits.
class RateLimiter {
 public:
  // Throws Error if a limit is not a number, or if the limits allow nothing.
  explicit RateLimiter(const RateLimits& limits) { set_limits(limits); }

  const RateLimits& limits() const { return limits_; }
  // Changes the limits. The counts of inserts and samples stay.
  void set_limits(const RateLimits& limits) {
    check(std::isfinite(limits.samples_per_insert) && limits.samples_per_insert > 0,
          "samples_per_insert", limits.samples_per_insert, "must be finite and above 0; fix it");
    check(limits.min_size >= 1, "min_size", limits.min_size, "must be at least 1; raise it");
    check(limits.min_cursor <= limits.max_cursor, "min_cursor", limits.min_cursor,
          "must be at most max_cursor; widen the error buffer");
    check(limits.max_cursor - limits.min_cursor >= std::max(1.0, limits.samples_per_insert),
          "error_buffer", limits.max_cursor - limits.min_cursor,
          "must leave room for one insert and one sample; widen it");
    limits_ = limits;
  }

  uint64_t num_inserts() const { return num_inserts_; }
  uint64_t num_samples() const { return num_samples_; }
  // Returns a finite cursor, so that its differences from the limits are numbers.
  double cursor() const {
    const double inserts = static_cast<double>(num_inserts_) * limits_.samples_per_insert;
    return std::min(inserts, std::numeric_limits<double>::max()) -
           static_cast<double>(num_samples_);
  }

  // The number of inserts allowed now, at most `wanted`, for a table with `size` items.
  uint64_t inserts_allowed(uint64_t wanted, uint64_t size) const {
    const uint64_t free = size < limits_.min_size ? limits_.min_size - size : 0;
    if (free >= wanted) return wanted;
    const double room = (limits_.max_cursor - cursor()) / limits_.samples_per_insert;
    return std::max(std::min(wanted, free), bounded(room, wanted));
  }
  // The number of samples allowed now, at most `wanted`, for a table with `size` items.
  uint64_t samples_allowed(uint64_t wanted, uint64_t size) const {
    if (size < limits_.min_size) return 0;
    return bounded(cursor() - limits_.min_cursor, wanted);
  }

  void insert(uint64_t count) { num_inserts_ += count; }
  void sample(uint64_t count) { num_samples_ += count; }
  // Subtracts samples that were given back unused.
  void give_back(uint64_t count) { num_samples_ -= count; }
  void restore(uint64_t num_inserts, uint64_t num_samples) {
    num_inserts_ = num_inserts;
    num_samples_ = num_samples;
  }

 private:
  static uint64_t bounded(double room, uint64_t wanted) {
    if (!(room >= 1.0)) return 0;
    return room >= static_cast<double>(wanted) ? wanted : static_cast<uint64_t>(room);
  }

  RateLimits limits_;
  uint64_t num_inserts_ = 0;
  uint64_t num_samples_ = 0;
};

}  // namespace tengen::store::engine
