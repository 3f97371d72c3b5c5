#pragma once
// The eight symmetries of a square board, and the four of a rectangle. Symmetry 0 is the identity;
// otherwise, in this order: bit 2 swaps rows and columns (of a square only), bit 1 turns the rows
// over, bit 0 turns the columns over.

namespace tengen {

inline constexpr int kNumSquareSymmetries = 8;
inline constexpr int kNumRectangleSymmetries = 4;

constexpr int num_board_symmetries(int height, int width) {
  return height == width ? kNumSquareSymmetries : kNumRectangleSymmetries;
}

// The cell (row * width + column) to which `symmetry` < num_board_symmetries() takes `cell`.
constexpr int transform_cell(int cell, int height, int width, int symmetry) {
  int row = cell / width;
  int column = cell % width;
  if (symmetry & 4) {
    const int old_row = row;
    row = column;
    column = old_row;
  }
  if (symmetry & 2) row = height - 1 - row;
  if (symmetry & 1) column = width - 1 - column;
  return row * width + column;
}

}  // namespace tengen
