#include "games/gomoku/gomoku.h"

#include <algorithm>

#include "base/error.h"
#include "games/text.h"

namespace tengen {

Gomoku::Gomoku(int size, bool exactly_five)
    : size_(size),
      num_cells_(size * size),
      exactly_five_(exactly_five),
      steps_{1, size, size + 1, size - 1} {
  if (size < kMinSize || size > kMaxSize) {
    throw Error("size (" + std::to_string(size) +
                ") must be 5 to 19; choose a board such as 9 or 15");
  }
  for (int cell = 0; cell < num_cells_; ++cell) {
    const auto index = static_cast<size_t>(cell);
    const int up = cell / size;
    const int left = cell % size;
    const int down = size - 1 - up;
    const int right = size - 1 - left;
    const std::array<int, 8> to_edge = {right, down, std::min(down, right), std::min(down, left),
                                        left,  up,   std::min(up, left),    std::min(up, right)};
    for (size_t direction = 0; direction < to_edge.size(); ++direction) {
      reach_[index][direction] = static_cast<uint8_t>(std::min(to_edge[direction], kMaxReach));
    }
    for (size_t player = 0; player < 2; ++player) {
      stone_keys_[player][index] = zobrist_key(kStoneTable + player, index);
    }
    for (int symmetry = 0; symmetry < kNumSquareSymmetries; ++symmetry) {
      transformed_[static_cast<size_t>(symmetry)][index] =
          static_cast<uint16_t>(transform_cell(cell, size, size, symmetry));
    }
  }
}

std::string Gomoku::name() const {
  return "gomoku/" + std::to_string(size_) + (exactly_five_ ? "/exact" : "");
}

void Gomoku::encode(const State& state, int symmetry, float* planes) const {
  const auto& target = transformed_[static_cast<size_t>(symmetry)];
  const auto own = static_cast<size_t>(to_play(state));
  fill_plane(planes, kOnBoardPlane, num_cells_, 1.0f);
  for (int plane = kOwnPlane; plane <= kOpponentPlane; ++plane) {
    fill_plane(planes, plane, num_cells_, 0.0f);
    const Stones& stones = state.stones[plane == kOwnPlane ? own : 1 - own];
    for (size_t word = 0; word < stones.size(); ++word) {
      for_each_bit(stones[word], [&](int bit) {
        planes[plane * num_cells_ + target[word * 64 + static_cast<size_t>(bit)]] = 1.0f;
      });
    }
  }
  fill_plane(planes, 3, num_cells_, 0.0f);
  if (state.last_move != kNoMove) planes[3 * num_cells_ + target[state.last_move]] = 1.0f;
  fill_plane(planes, 4, num_cells_, own == 0 ? 1.0f : 0.0f);
}

std::string Gomoku::to_string(const State& state) const {
  std::string cells;
  for (int cell = 0; cell < num_cells_; ++cell) {
    cells += stone_text(has_stone(state.stones[0], cell), has_stone(state.stones[1], cell));
  }
  return board_text(cells, size_, kColumns) + status_text(to_play(state), outcome(state));
}

}  // namespace tengen
