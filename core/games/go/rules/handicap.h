#pragma once
// The fixed points of handicap stones: the corner points on the third line (the fourth for sides of
// 13 or more), then the middles of the sides and of the board. Source: Farneback 2002,
// "Specification of the Go Text Protocol, version 2", 4.1.1, which defines square boards; for a
// rectangle, lines and middles are computed per side.

#include <algorithm>
#include <array>

namespace tengen {

// The maximum number of handicap stones; 0 if a side is shorter than 7. Middle points need odd
// sides longer than 7, because on a side of 7 they would touch the corner points.
constexpr int max_handicap(int height, int width) {
  if (std::min(height, width) < 7) return 0;
  const bool has_middles = height % 2 == 1 && width % 2 == 1 && std::min(height, width) > 7;
  return has_middles ? 9 : 4;
}

// The points (row * width + column) of `num_stones` <= max_handicap() stones; the rest is unused.
constexpr std::array<int, 9> handicap_points(int height, int width, int num_stones) {
  const int row = height < 13 ? 2 : 3;
  const int column = width < 13 ? 2 : 3;
  const auto point = [width](int r, int c) { return r * width + c; };
  const int bottom = height - 1 - row;
  const int right = width - 1 - column;
  const int centre = point(height / 2, width / 2);
  std::array<int, 9> points = {
      point(bottom, column),
      point(row, right),  // two stones: lower left and upper right
      point(row, column),
      point(bottom, right),
      point(height / 2, column),
      point(height / 2, right),
      point(bottom, width / 2),
      point(row, width / 2),
      centre,
  };
  // An odd number of stones above four includes the centre.
  if (num_stones > 4 && num_stones % 2 == 1) points[static_cast<size_t>(num_stones - 1)] = centre;
  return points;
}

}  // namespace tengen
