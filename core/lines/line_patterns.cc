#include "lines/line_patterns.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace tengen {
namespace {

constexpr int kSteps[LinePatterns::kDirections][2] = {
    {0, 1}, {1, 0}, {1, 1}, {1, -1}};  // rows, columns

}  // namespace

LinePatterns::LinePatterns(int reach) : reach_(reach) {
  check(reach >= 1 && reach <= kMaxReach, "reach", std::to_string(reach), "must be 1 to 5");
  uint32_t sides_of_size = 1;
  for (int size = 0; size <= reach; ++size) {
    first_side_[size + 1] = first_side_[size] + sides_of_size;
    sides_of_size *= kStates;
  }
  num_sides_ = first_side_[reach + 1];
  num_pairs_ = num_sides_ * (num_sides_ + 1) / 2;
}

uint32_t LinePatterns::pattern(uint32_t state, uint32_t side, uint32_t other_side) const {
  const uint32_t low = std::min(side, other_side);
  const uint32_t high = std::max(side, other_side);
  return state * num_pairs_ + high * (high + 1) / 2 + low;
}

std::vector<float> LinePatterns::inputs() const {
  const auto num_inputs = static_cast<size_t>(this->num_inputs());
  std::vector<float> all(size() * num_inputs);
  const auto show = [](uint32_t state, float* cell) {
    if (state > 0) cell[state - 1] = 1.0f;
  };
  // Writes a side's cells from the nearest to the farthest, `step` inputs apart.
  const auto show_side = [&](uint32_t side, float* nearest, int step) {
    int size = 0;
    while (side >= first_side_[size + 1]) ++size;
    uint32_t rest = side - first_side_[size];
    for (int i = 0; i < reach_; ++i, rest /= kStates) {
      show(i < size ? rest % kStates : kStates, nearest + i * step);
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
  check(height >= 1 && height <= kMaxSide && width >= 1 && width <= kMaxSide, "board",
        std::to_string(height) + "x" + std::to_string(width), "must be at most 19x19");
  const int num_cells = height * width;
  const float* own = planes + num_cells;
  const float* other = own + num_cells;
  std::array<uint32_t, kMaxReach + 1> powers = {1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * kStates;
  std::array<uint32_t, kMaxSide> states;
  // The codes of all cells before and after a place, the nearest cell last.
  std::array<uint32_t, kMaxSide + 1> before;
  std::array<uint32_t, kMaxSide + 1> after;

  for (int direction = 0; direction < kDirections; ++direction) {
    const int down = kSteps[direction][0];
    const int across = kSteps[direction][1];
    const int step = down * width + across;
    for (int start = 0; start < num_cells; ++start) {
      const int y = start / width;
      const int x = start % width;
      // A line starts at a cell without predecessor.
      const int column_before = x - across;
      if (y - down >= 0 && column_before >= 0 && column_before < width) continue;
      const int columns = across > 0 ? width - x : across < 0 ? x + 1 : kMaxSide;
      const auto length = static_cast<size_t>(std::min(down > 0 ? height - y : kMaxSide, columns));
      before[0] = after[length] = 0;
      for (size_t i = 0; i < length; ++i) {
        const int cell = start + static_cast<int>(i) * step;
        states[i] = own[cell] > 0.5f ? 1 : other[cell] > 0.5f ? 2 : 0;
        before[i + 1] = before[i] * kStates + states[i];
      }
      for (size_t i = length; i-- > 0;) after[i] = after[i + 1] * kStates + states[i];
      for (size_t i = 0; i < length; ++i) {
        const size_t left = std::min(i, static_cast<size_t>(reach_));
        const size_t right = std::min(length - 1 - i, static_cast<size_t>(reach_));
        const uint32_t left_side = first_side_[left] + before[i] - before[i - left] * powers[left];
        const uint32_t right_side =
            first_side_[right] + after[i + 1] - after[i + 1 + right] * powers[right];
        const int cell = start + static_cast<int>(i) * step;
        patterns[kDirections * cell + direction] = pattern(states[i], left_side, right_side);
      }
    }
  }
}

}  // namespace tengen
