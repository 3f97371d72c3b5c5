#include "games/connect4/connect4.h"

#include "games/text.h"

namespace tengen {

void Connect4::encode(const State& state, int symmetry, float* planes) const {
  fill_plane(planes, kOnBoardPlane, kNumCells, 1.0f);
  for (int plane = kOwnPlane; plane <= kOpponentPlane; ++plane) {
    fill_plane(planes, plane, kNumCells, 0.0f);
    const uint64_t stones = plane == kOwnPlane ? state.own : state.own ^ state.occupied;
    for_each_bit(stones, [&](int bit) {
      const int column =
          kImages[static_cast<size_t>(symmetry)][static_cast<size_t>(bit / kColumnBits)];
      const int row = kHeight - 1 - bit % kColumnBits;
      planes[plane * kNumCells + row * kWidth + column] = 1.0f;
    });
  }
  fill_plane(planes, 3, kNumCells, to_play(state) == 0 ? 1.0f : 0.0f);
}

std::string Connect4::to_string(const State& state) const {
  const uint64_t opponent = state.own ^ state.occupied;
  const uint64_t first = to_play(state) == 0 ? state.own : opponent;
  std::string text;
  for (int cell = 0; cell < kNumCells; ++cell) {
    const int bit = cell % kWidth * kColumnBits + kHeight - 1 - cell / kWidth;
    text += stone_text(first >> bit & 1, state.occupied >> bit & 1);
    text += cell % kWidth == kWidth - 1 ? '\n' : ' ';
  }
  return text + "0 1 2 3 4 5 6\n" + status_text(to_play(state), outcome(state));
}

}  // namespace tengen
