#pragma once
// Which steps an item has.

#include <cstdint>

namespace tengen::store::engine {

// Steps one after another of one stream, the steps of one writer.
struct StepRange {
  uint64_t first = 0;  // counted from the stream's beginning
  uint32_t stream = 0;
  uint32_t num_steps = 0;
};

}  // namespace tengen::store::engine
