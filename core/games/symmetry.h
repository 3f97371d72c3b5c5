#pragma once
// The eight symmetries of a square board, and the four of a rectangle. Symmetry 0 is the identity.
// The bits of a symmetry apply in this order: bit 2 transposes (squares only), bit 1 flips the
// rows, bit 0 flips the columns.

#include <array>
#include <cstddef>
#include <cstdint>

namespace tengen {

inline constexpr int kNumSquareSymmetries = 8;
inline constexpr int kNumRectangleSymmetries = 4;

constexpr int num_board_symmetries(int height, int width) {
  return height == width ? kNumSquareSymmetries : kNumRectangleSymmetries;
}

// The image (row * frame_width + column) of a cell under `symmetry` < kNumSquareSymmetries. The
// board is in the upper left corner of a frame, which a transposed board must also fit.
constexpr int transform_in_frame(int row, int column, int height, int width, int frame_width,
                                 int symmetry) {
  const bool is_swapped = symmetry & 4;
  int new_row = is_swapped ? column : row;
  int new_column = is_swapped ? row : column;
  if (symmetry & 2) new_row = (is_swapped ? width : height) - 1 - new_row;
  if (symmetry & 1) new_column = (is_swapped ? height : width) - 1 - new_column;
  return new_row * frame_width + new_column;
}

// The image (row * width + column) of `cell` under `symmetry` < num_board_symmetries().
constexpr int transform_cell(int cell, int height, int width, int symmetry) {
  return transform_in_frame(cell / width, cell % width, height, width, width, symmetry);
}

// transform_cell() of every cell under every symmetry of a square.
template <int kSize>
constexpr auto make_square_images() {
  std::array<std::array<uint16_t, kSize * kSize>, kNumSquareSymmetries> images{};
  for (int symmetry = 0; symmetry < kNumSquareSymmetries; ++symmetry) {
    for (int cell = 0; cell < kSize * kSize; ++cell) {
      images[static_cast<size_t>(symmetry)][static_cast<size_t>(cell)] =
          static_cast<uint16_t>(transform_cell(cell, kSize, kSize, symmetry));
    }
  }
  return images;
}

}  // namespace tengen
