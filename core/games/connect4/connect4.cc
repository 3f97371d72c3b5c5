#include "games/connect4/connect4.h"

#include "games/text.h"

namespace tengen {

void Connect4::encode(const State& state, int symmetry, float* planes) const {
  const uint64_t opponent = state.own ^ state.occupied;
  fill_plane(planes, kOnBoardPlane, kNumCells, 1.0f);
  for (int cell = 0; cell < kNumCells; ++cell) {
    const int column = cell % kWidth;
    const int bit = bit_of(cell - column + transform_action(column, symmetry));
    planes[kOwnPlane * kNumCells + cell] = static_cast<float>(state.own >> bit & 1);
    planes[kOpponentPlane * kNumCells + cell] = static_cast<float>(opponent >> bit & 1);
  }
  fill_plane(planes, 3, kNumCells, to_play(state) == 0 ? 1.0f : 0.0f);
}

std::string Connect4::to_string(const State& state) const {
  const uint64_t opponent = state.own ^ state.occupied;
  const uint64_t first = to_play(state) == 0 ? state.own : opponent;
  std::string text;
  for (int cell = 0; cell < kNumCells; ++cell) {
    const int bit = bit_of(cell);
    text += stone_text(first >> bit & 1, state.occupied >> bit & 1);
    text += cell % kWidth == kWidth - 1 ? '\n' : ' ';
  }
  return text + "0 1 2 3 4 5 6\n" + status_text(to_play(state), outcome(state)) + '\n';
}

}  // namespace tengen
