#pragma once
// The observation planes of the native games, in one place. A plane is [height, width] float32;
// "own" is the side to move.
//
//   plane  tictactoe        connect4                  gomoku
//   0      on the board     on the board              on the board
//   1      own stones       own stones                own stones
//   2      opponent stones  opponent stones           opponent stones
//   3                       ones if first is to move  the last move
//   4                                                 ones if first is to move
//
// Who moved first matters where it decides who runs out of good moves (connect4) or whose attack
// has the tempo (gomoku); a convolution cannot count stones, so it is told.

#include <algorithm>

namespace tengen {

inline constexpr int kOnBoardPlane = 0;
inline constexpr int kOwnPlane = 1;
inline constexpr int kOpponentPlane = 2;

// Fills plane number `plane` of planes of `num_cells` cells each.
inline void fill_plane(float* planes, int plane, int num_cells, float value) {
  std::fill_n(planes + plane * num_cells, num_cells, value);
}

}  // namespace tengen
