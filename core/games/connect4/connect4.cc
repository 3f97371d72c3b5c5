#include "games/connect4/connect4.h"

#include "games/text.h"

namespace tengen {

Near Connect4::near_actions(const State& state, uint16_t* actions) const {
  Near found{{.count = legal_actions(state, actions)}};
  if (found.count == 0) return found;
  const uint64_t playable = (state.occupied + kBottomRow) & kBoard;
  const auto list = [&](uint64_t cells) {
    int count = 0;
    for (int column = 0; column < kWidth; ++column) {
      const uint64_t whole = ((uint64_t{1} << kHeight) - 1) << (column * kColumnBits);
      if (cells & whole) actions[count++] = static_cast<uint16_t>(column);
    }
    return count;
  };
  const uint64_t own = fourth_cells(state.own, state.occupied) & playable;
  if (own != 0) return {{.count = list(own), .is_won = true}};
  const uint64_t threats = fourth_cells(state.own ^ state.occupied, state.occupied);
  // Takes the threatened cell, and no cell below a threatened one.
  const uint64_t forced = threats & playable;
  const uint64_t saving = (forced != 0 ? forced : playable) & ~(threats >> 1);
  found.is_lost = saving == 0 || std::popcount(forced) > 1;
  if (!found.is_lost) found.count = list(saving);
  return found;
}

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
