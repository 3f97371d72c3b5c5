#include "records/row_draw.h"

#include <string>

#include "base/error.h"
#include "base/permutation.h"
#include "base/rng.h"

namespace tengen {
namespace {

// Returns rows and symmetries. `place_of(i)` returns the offset of the i-th row in `range`.
template <class PlaceOf>
RowDraw draw(size_t num_rows, const RowRange& range, Rng symmetries, PlaceOf&& place_of) {
  RowDraw draw;
  draw.rows.reserve(num_rows);
  draw.symmetries.reserve(num_rows);
  for (size_t i = 0; i < num_rows; ++i) {
    draw.rows.push_back(static_cast<int64_t>(range.first_row + place_of(i)));
    draw.symmetries.push_back(static_cast<uint8_t>(symmetries.below(range.num_symmetries)));
  }
  return draw;
}

void check(const RowRange& range) {
  if (range.size < 1 || range.num_symmetries < 1) {
    throw Error("window (" + std::to_string(range.size) + " rows) must have at least 1; add games");
  }
}

}  // namespace

RowDraw draw_rows(uint64_t seed, uint64_t step, size_t num_rows, const RowRange& range) {
  check(range);
  Rng places(seed, step, 0, 0, Purpose::kSampling);
  return draw(num_rows, range, Rng(seed, step, 0, 0, Purpose::kSymmetry),
              [&](size_t) { return places.below(range.size); });
}

RowDraw draw_rows_of_pass(uint64_t seed, uint64_t number, uint32_t offset, size_t num_rows,
                          const RowRange& range) {
  check(range);
  if (num_rows > range.size || offset > range.size - num_rows) {
    throw Error("rows (" + std::to_string(num_rows) + " from " + std::to_string(offset) +
                " on) must lie in a pass of " + std::to_string(range.size) + "; begin another");
  }
  const Permutation order(Rng(seed, number, 0, 0, Purpose::kWindowPass).next64(), range.size);
  return draw(num_rows, range, Rng(seed, number, offset, 0, Purpose::kSymmetry),
              [&](size_t i) { return order(offset + static_cast<uint32_t>(i)); });
}

}  // namespace tengen
