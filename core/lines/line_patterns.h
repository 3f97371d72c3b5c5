#pragma once
// The patterns of the four lines through a cell: across, down and both diagonals, `reach` cells to
// both sides. A cell is empty, has an own or an opponent's stone, or is off the board.
//
// A line and its reverse have the same pattern, so features that are summed over the four lines are
// equivariant under all eight symmetries of the board.

#include <cstdint>
#include <vector>

#include "simd/kernels.h"

namespace tengen {

// Planes [num_planes, height, width]: plane 1 shows own stones, plane 2 the opponent's.
struct LinesBoard {
  int num_planes;
  int height;
  int width;
};

class LinePatterns {
 public:
  static constexpr int kMaxReach = 5;
  static constexpr int kMaxSide = 19;
  static constexpr int kDirections = 4;

  // Throws Error if `reach` is not 1 to kMaxReach.
  explicit LinePatterns(int reach);

  // The number of patterns.
  uint32_t size() const { return kStates * num_pairs_; }
  // The number of inputs of a pattern.
  int num_inputs() const { return kStates * (2 * reach_ + 1); }

  // Returns the inputs [size, num_inputs] of all patterns. Those of cell k of the line are 3 k to
  // 3 k + 2: 1 for an own stone, an opponent's stone, and a cell off the board. Of the two ways to
  // read a line, they show one.
  std::vector<float> inputs() const;

  // Writes the patterns of the lines through each cell of a position, [kDirections, height *
  // width], and unspecified numbers at up to kPadding more places. Throws Error if the board is
  // larger than kMaxSide.
  void find(const LinesBoard& board, const float* planes, uint32_t* patterns) const;
  static constexpr int kPadding = simd::kOverread;

 private:
  static constexpr int kStates = 3;  // of a cell on the board: empty, own, opponent's

  int reach_;
  // A side is the cells on one side of a cell. Its number is the sum of t 3^i over these cells,
  // where the nearest has i = 0; t is 0 off the board, and 1 plus the cell's state otherwise. The
  // pattern of state s and sides a <= b is s num_pairs_ + b (b + 1) / 2 + a.
  uint32_t num_sides_;
  uint32_t num_pairs_;
};

}  // namespace tengen
