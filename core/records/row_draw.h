#pragma once
// Which rows of a window a batch has.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tengen {

// Row numbers, and a symmetry for each.
struct RowDraw {
  std::vector<int64_t> rows;
  std::vector<uint8_t> symmetries;
};

// The newest rows of a run: `size` of them from `first_row` on, in a game of `num_symmetries`;
// both at least 1.
struct RowRange {
  uint64_t first_row = 0;
  uint32_t size = 1;
  uint32_t num_symmetries = 1;
};

// `num_rows` rows drawn evenly, with replacement, and symmetries as well: a pure function of the
// arguments.
RowDraw draw_rows(uint64_t seed, uint64_t step, size_t num_rows, const RowRange& range);

// Elements `offset` to `offset + num_rows` of a random order of the range, which has as many:
// part of pass `number` over it, where each row comes once. Pure as well.
RowDraw draw_rows_of_pass(uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows,
                          const RowRange& range);

}  // namespace tengen
