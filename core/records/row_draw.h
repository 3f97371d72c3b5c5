#pragma once
// Chooses the rows of a batch from a window.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// Row numbers, and a symmetry for each.
struct RowDraw {
  std::vector<int64_t> rows;
  std::vector<uint8_t> symmetries;
};

// The newest rows of a run: `size` >= 1 of them from `first_row` on, and `num_symmetries` >= 1.
struct RowRange {
  uint64_t first_row = 0;
  uint32_t size = 1;
  uint32_t num_symmetries = 1;
};

// Draws `num_rows` rows and symmetries uniformly, with replacement. A pure function.
RowDraw draw_rows(uint64_t seed, uint64_t step, size_t num_rows, const RowRange& range);

// Elements `offset` to `offset + num_rows` of a random permutation of the range, which must have
// that many: a part of pass `number` over it, in which each row occurs once. Also pure.
RowDraw draw_rows_of_pass(uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows,
                          const RowRange& range);

}  // namespace tengen
