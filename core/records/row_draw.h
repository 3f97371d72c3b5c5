#pragma once
// Chooses the rows of a batch from a window.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// Sampled row numbers, with a symmetry for each row.
struct RowDraw {
  std::vector<int64_t> rows;
  std::vector<uint8_t> symmetries;
};

// The window: `size` >= 1 rows from `first_row` on, of a game with `num_symmetries` >= 1.
struct RowRange {
  uint64_t first_row = 0;
  uint32_t size = 1;
  uint32_t num_symmetries = 1;
};

// Samples `num_rows` rows and symmetries uniformly, with replacement. A pure function.
RowDraw draw_rows(uint64_t seed, uint64_t step, size_t num_rows, const RowRange& range);

// Returns `num_rows` rows of pass `number`, from `offset` on. A pass is a random permutation of
// `range`. Throws Error if fewer rows are left. A pure function.
RowDraw draw_rows_of_pass(uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows,
                          const RowRange& range);

}  // namespace tengen
