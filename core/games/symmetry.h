#pragma once
// The eight symmetries of a square board. Symmetry 0 is the identity; otherwise, in this order:
// bit 2 swaps rows and columns, bit 1 turns the rows over, bit 0 turns the columns over.

namespace tengen {

inline constexpr int kNumSquareSymmetries = 8;

// The cell (row * size + column) to which `symmetry` takes `cell`.
constexpr int transform_cell(int cell, int size, int symmetry) {
  int row = cell / size;
  int column = cell % size;
  if (symmetry & 4) {
    const int old_row = row;
    row = column;
    column = old_row;
  }
  if (symmetry & 2) row = size - 1 - row;
  if (symmetry & 1) column = size - 1 - column;
  return row * size + column;
}

}  // namespace tengen
