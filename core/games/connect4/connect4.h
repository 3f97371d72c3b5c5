#pragma once
// Connect Four: 6 rows x 7 columns, stones fall to the bottom, four in a row win.
//
// Actions: column 0..6. Planes (4): on the board, own stones, opponent stones, ones if the first
// player is to move (games/planes.h). Symmetries: 2, identity and mirror.
//
// A column takes 7 bits, the lowest cell first and an unused seventh bit on top, so that shifts by
// 1 (up), 7 (right), 6 and 8 (diagonals) never cross into another column.

#include <bit>
#include <string>

#include "games/bits.h"
#include "games/decisive.h"
#include "games/forced_win.h"
#include "games/game.h"
#include "games/planes.h"

namespace tengen {

class Connect4 {
 public:
  static constexpr int kHeight = 6;
  static constexpr int kWidth = 7;
  static constexpr int kNumCells = kHeight * kWidth;

  struct State {
    uint64_t own = 0;       // stones of the side to move
    uint64_t occupied = 0;  // stones of both sides
  };

  std::string name() const { return "connect4"; }
  int num_actions() const { return kWidth; }
  int num_planes() const { return 4; }
  int height() const { return kHeight; }
  int width() const { return kWidth; }
  int max_plies() const { return kNumCells; }
  PolicyLayout policy_layout() const { return PolicyLayout::kColumns; }
  int num_symmetries() const { return 2; }

  State initial_state() const { return {}; }
  int ply(const State& state) const { return std::popcount(state.occupied); }
  int to_play(const State& state) const { return ply(state) & 1; }

  // Computes the outcome on demand and not at each move, because a search replays many moves that
  // are known not to end the game. Only the player who has just moved can have four in a row.
  Outcome outcome(const State& state) const {
    if (has_four(state.own ^ state.occupied)) {
      return to_play(state) == 1 ? Outcome::kFirstWins : Outcome::kSecondWins;
    }
    return state.occupied == kBoard ? Outcome::kDraw : Outcome::kOngoing;
  }

  int legal_actions(const State& state, uint16_t* actions) const {
    if (outcome(state) != Outcome::kOngoing) return 0;
    int count = 0;
    for (int column = 0; column < kWidth; ++column) {
      // Stores every column, but counts only open ones, which avoids branch mispredictions. The
      // store stays in bounds because count <= column.
      actions[count] = static_cast<uint16_t>(column);
      count += (state.occupied & top_cell(column)) == 0;
    }
    return count;
  }
  static constexpr int kMostActions = kWidth;
  Decisive decisive_actions(const State& state, uint16_t* actions) const {
    return near_or_forced(*this, state, actions);
  }
  Near near_actions(const State& state, uint16_t* actions) const;
  int forcing_actions(const State& state, uint16_t* actions) const {
    return legal_actions(state, actions);
  }
  bool is_legal(const State& state, int action) const {
    return action >= 0 && action < kWidth && (state.occupied & top_cell(action)) == 0 &&
           outcome(state) == Outcome::kOngoing;
  }
  void apply(State& state, int action) const {
    state.own ^= state.occupied;  // now the stones of the opponent, who moves next
    state.occupied |= state.occupied + (uint64_t{1} << (action * kColumnBits));
  }

  // Returns an exact key: different positions have different keys. Adding the bottom row to
  // `occupied` sets one bit above every column, which makes the sum with `own` unique.
  Key128 key(const State& state) const {
    return combine(zobrist_key(kKeyTable, 0), state.own + state.occupied + kBottomRow);
  }
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State&, int symmetry) const {
    return kImages[static_cast<size_t>(symmetry)].data();
  }
  std::string to_string(const State& state) const;

 private:
  static constexpr uint64_t kKeyTable = 2;
  static constexpr std::array<std::array<uint16_t, kWidth>, 2> kImages = {
      {{0, 1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1, 0}}};
  static constexpr int kColumnBits = kHeight + 1;
  static constexpr uint64_t kBottomRow = [] {
    uint64_t row = 0;
    for (int column = 0; column < kWidth; ++column) row |= uint64_t{1} << (column * kColumnBits);
    return row;
  }();
  static constexpr uint64_t kBoard = kBottomRow * ((uint64_t{1} << kHeight) - 1);

  static constexpr uint64_t top_cell(int column) {
    return uint64_t{1} << (column * kColumnBits + kHeight - 1);
  }
  // The empty cells that complete four of `stones` in a row, playable or not.
  static uint64_t fourth_cells(uint64_t stones, uint64_t occupied) {
    uint64_t found = (stones << 1) & (stones << 2) & (stones << 3);
    for (const int step : {kColumnBits, kColumnBits - 1, kColumnBits + 1}) {
      const uint64_t before = (stones << step) & (stones << (2 * step));
      found |= before & ((stones << (3 * step)) | (stones >> step));
      const uint64_t after = (stones >> step) & (stones >> (2 * step));
      found |= after & ((stones << step) | (stones >> (3 * step)));
    }
    return found & kBoard & ~occupied;
  }
  static constexpr bool has_four(uint64_t stones) {
    for (const int step : {1, kColumnBits, kColumnBits - 1, kColumnBits + 1}) {
      const uint64_t pairs = stones & (stones >> step);
      if (pairs & (pairs >> (2 * step))) return true;
    }
    return false;
  }
};

static_assert(HasDecisive<Connect4> && HasForcing<Connect4>);
static_assert(sizeof(Connect4::State) == 16);

}  // namespace tengen
