#include "games/tictactoe/tictactoe.h"

#include "games/text.h"

namespace tengen {

void TicTacToe::encode(const State& state, int symmetry, float* planes) const {
  fill_plane(planes, kOnBoardPlane, kNumCells, 1.0f);
  const auto own = static_cast<size_t>(to_play(state));
  for (int plane = kOwnPlane; plane <= kOpponentPlane; ++plane) {
    fill_plane(planes, plane, kNumCells, 0.0f);
    const uint16_t stones = state.stones[plane == kOwnPlane ? own : 1 - own];
    for_each_bit(stones, [&](int cell) {
      planes[plane * kNumCells +
             kImages[static_cast<size_t>(symmetry)][static_cast<size_t>(cell)]] = 1.0f;
    });
  }
}

std::string TicTacToe::to_string(const State& state) const {
  std::string cells;
  for (int cell = 0; cell < kNumCells; ++cell) {
    cells += stone_text(state.stones[0] >> cell & 1, state.stones[1] >> cell & 1);
  }
  return board_text(cells, kSize, kColumns) + status_text(to_play(state), outcome(state));
}

}  // namespace tengen
