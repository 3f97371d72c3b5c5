#pragma once
// A priority as a store keeps it.

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/error.h"

namespace tengen::store::engine {

// The float that is kept of a priority, in the table as in its log. Only 0 becomes 0: any other
// priority below 1.18e-38, the smallest normal float, is kept as that. Throws Error for a priority
// that is negative, no number, or too large for a float, which no log could hold either.
inline float kept_priority(double priority) {
  if (!(priority >= 0 && priority <= std::numeric_limits<float>::max())) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", priority);
    check(false, "priority", text,
          "must be 0 to 3.4e38, what a float holds; correct the loss that gave it");
  }
  if (priority == 0) return 0.0f;
  return std::max(static_cast<float>(priority), std::numeric_limits<float>::min());
}

}  // namespace tengen::store::engine
