#include "lines/line_patterns.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tengen {

LinePatterns::LinePatterns(int reach) : reach_(reach) {
  check(reach >= 1 && reach <= kMaxReach, "reach", reach, "must be 1 to 5");
  num_sides_ = 1;
  for (int i = 0; i < reach; ++i) num_sides_ = num_sides_ * kStates + 1;
  num_pairs_ = num_sides_ * (num_sides_ + 1) / 2;
}

std::vector<float> LinePatterns::inputs() const {
  const auto num_inputs = static_cast<size_t>(this->num_inputs());
  std::vector<float> all(size() * num_inputs);
  const auto show = [](uint32_t state, float* cell) {
    if (state > 0) cell[state - 1] = 1.0f;
  };
  // Writes a side's cells from the nearest to the farthest, `step` inputs apart.
  const auto show_side = [&](uint32_t side, float* nearest, int step) {
    for (int i = 0; i < reach_; ++i, nearest += step) {
      if (side == 0) {
        show(kStates, nearest);
        continue;
      }
      show((side - 1) % kStates, nearest);
      side = (side - 1) / kStates;
    }
  };
  float* row = all.data();
  for (uint32_t state = 0; state < kStates; ++state) {
    for (uint32_t high = 0; high < num_sides_; ++high) {
      for (uint32_t low = 0; low <= high; ++low, row += num_inputs) {
        float* centre = row + kStates * reach_;
        show(state, centre);
        show_side(low, centre - kStates, -kStates);
        show_side(high, centre + kStates, kStates);
      }
    }
  }
  return all;
}

void LinePatterns::find(const LinesBoard& board, const float* planes, uint32_t* patterns) const {
  const int height = board.height;
  const int width = board.width;
  check(height >= 1 && height <= kMaxSide, "board height", height, "must be 1 to 19");
  check(width >= 1 && width <= kMaxSide, "board width", width, "must be 1 to 19");
  const int num_cells = height * width;
  // The board, with cells off the board on all sides. Rows share those between them.
  const int pitch = width + reach_;
  std::array<int32_t, (kMaxSide + 2 * kMaxReach) * (kMaxSide + kMaxReach) + kMaxReach + kPadding>
      cells;
  std::fill_n(cells.data(), (height + 2 * reach_) * pitch + reach_ + kPadding, 0);
  int32_t* const first = cells.data() + reach_ * pitch + reach_;
  const float* own = planes + num_cells;
  const float* other = own + num_cells;
  for (int y = 0; y < height; ++y, own += width, other += width) {
    for (int x = 0; x < width; ++x) {
      first[y * pitch + x] = own[x] > 0.5f ? 2 : other[x] > 0.5f ? 3 : 1;
    }
  }
  const simd::Kernels& kernels = simd::kernels();
  for (const int step : {1, pitch, pitch + 1, pitch - 1}) {
    for (int y = 0; y < height; ++y, patterns += width) {
      kernels.line_patterns(first + y * pitch, step, width, reach_,
                            static_cast<int32_t>(num_pairs_), patterns);
    }
  }
}

}  // namespace tengen
