#pragma once
// Functions that sample the rows of a batch from the window.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// Sampled row numbers, and one symmetry per row.
struct RowDraw {
  std::vector<int64_t> rows;
  std::vector<uint8_t> symmetries;
};

// A window of `size` >= 1 rows from `first_row` on, in a game with `num_symmetries` >= 1.
struct RowRange {
  uint64_t first_row = 0;
  uint32_t size = 1;
  uint32_t num_symmetries = 1;
};

// Samples `num_rows` rows and symmetries uniformly, with replacement. Deterministic.
RowDraw draw_rows(uint64_t seed, uint64_t step, size_t num_rows, const RowRange& range);

// Returns `num_rows` rows of pass `number`, starting at `offset`. A pass is a random permutation of
// `range`. Throws Error if the pass has too few rows left. Deterministic.
RowDraw draw_rows_of_pass(uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows,
                          const RowRange& range);

}  // namespace tengen
