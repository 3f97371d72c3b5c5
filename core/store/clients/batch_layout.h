#pragma once
// Where the columns of a batch lie in its buffer.

#include <cstdint>
#include <vector>

#include "store/state/schema.h"

namespace tengen::store {

// Column c begins at offsets[c], a multiple of 64; bytes between two columns are unspecified.
struct BatchLayout {
  BatchLayout(const engine::Schema& schema, uint32_t num_samples, uint32_t num_steps) {
    for (const engine::Column& column : schema.columns()) {
      offsets.push_back(num_bytes);
      const uint64_t column_bytes = column.num_bytes * num_steps * num_samples;
      num_bytes += (column_bytes + 63) / 64 * 64;
    }
  }

  std::vector<uint64_t> offsets;
  uint64_t num_bytes = 0;
};

}  // namespace tengen::store
