#pragma once
// Gomoku on size x size, 5 <= size <= 19. Freestyle: five or more in a row win. Exact: a row of
// exactly five wins, a longer row does not.
//
// Actions: row * size + column, row 0 at the top. Planes (5): on the board, own stones, opponent
// stones, the last move, ones if the first player is to move (games/planes.h). Symmetries: the 8
// of the square (games/symmetry.h).

#include <array>
#include <string>
#include <type_traits>

#include "games/bits.h"
#include "games/decisive.h"
#include "games/forced_win.h"
#include "games/game.h"
#include "games/planes.h"
#include "games/symmetry.h"

namespace tengen {

class Gomoku {
 public:
  static constexpr int kMinSize = 5;
  static constexpr int kMaxSize = 19;
  static constexpr int kMaxCells = kMaxSize * kMaxSize;
  static constexpr int kMostActions = kMaxCells;
  static constexpr int kNumWords = (kMaxCells + 63) / 64;
  static constexpr uint16_t kNoMove = 0xffff;

  using Stones = std::array<uint64_t, kNumWords>;

  // A position. Fits into two cache lines, because a search copies it at every simulation.
  struct State {
    std::array<Stones, 2> stones{};  // bit row * size + column: first player's, second player's
    Key128 key{};                    // hash of the stones, without the last move
    uint16_t last_move = kNoMove;
    uint16_t ply = 0;
  };

  // Throws Error if size is outside kMinSize..kMaxSize.
  explicit Gomoku(int size, bool exactly_five = false);

  std::string name() const;
  int num_actions() const { return num_cells_; }
  int num_planes() const { return 5; }
  int height() const { return size_; }
  int width() const { return size_; }
  int max_plies() const { return num_cells_; }
  PolicyLayout policy_layout() const { return PolicyLayout::kCells; }
  int num_symmetries() const { return kNumSquareSymmetries; }

  State initial_state() const {
    State state;
    state.key = zobrist_key(kSizeTable, static_cast<uint64_t>(size_));
    return state;
  }
  int ply(const State& state) const { return state.ply; }
  int to_play(const State& state) const { return state.ply & 1; }

  // Computes the outcome on demand and not at each move, because a search replays many moves that
  // are known not to end the game. Only the last move can have completed a row.
  Outcome outcome(const State& state) const {
    const int mover = (state.ply & 1) ^ 1;
    if (state.ply >= kFirstWinPly &&
        wins(state.stones[static_cast<size_t>(mover)], state.last_move)) {
      return mover == 0 ? Outcome::kFirstWins : Outcome::kSecondWins;
    }
    return state.ply == num_cells_ ? Outcome::kDraw : Outcome::kOngoing;
  }

  int legal_actions(const State& state, uint16_t* actions) const {
    if (outcome(state) != Outcome::kOngoing) return 0;
    const Stones empty = empty_cells(state);
    return list_set_bits(empty.data(), num_cells_, actions);
  }
  Decisive decisive_actions(const State& state, uint16_t* actions) const {
    return near_or_forced(*this, state, actions);
  }
  Near near_actions(const State& state, uint16_t* actions) const;
  // The moves that make a four, which one more move completes to a row of five or more.
  int forcing_actions(const State& state, uint16_t* actions) const;
  // See HasForcingAfter.
  Near near_after(const State& state, uint16_t* actions) const;
  int forcing_after(const State& state, const uint16_t* before, int num_before, int action,
                    uint16_t* actions) const;
  bool is_legal(const State& state, int action) const {
    return action >= 0 && action < num_cells_ && !has_stone(state.stones[0], action) &&
           !has_stone(state.stones[1], action) && outcome(state) == Outcome::kOngoing;
  }
  void apply(State& state, int action) const {
    const auto mover = static_cast<size_t>(state.ply & 1);
    state.stones[mover][static_cast<size_t>(action >> 6)] |= uint64_t{1} << (action & 63);
    state.key ^= stone_keys_[mover][static_cast<size_t>(action)];
    state.last_move = static_cast<uint16_t>(action);
    ++state.ply;
  }

  Key128 key(const State& state) const {
    return state.key ^ zobrist_key(kLastMoveTable, state.last_move);
  }
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State&, int symmetry) const {
    return transformed_[static_cast<size_t>(symmetry)].data();
  }
  std::string to_string(const State& state) const;

 private:
  static constexpr uint64_t kStoneTable = 3;  // hash tables of stones, one per player: 3 and 4
  static constexpr uint64_t kLastMoveTable = 5;
  static constexpr uint64_t kSizeTable = 6;
  static constexpr int kFirstWinPly = 9;  // the ply after the first player's fifth stone
  // The maximum reach to count: five and not four, to distinguish a row of six from a row of five.
  static constexpr int kMaxReach = 5;

  // The number of cells between a cell and the edge, capped at kMaxReach, in the directions right,
  // down, down right, down left (0..3) and their opposites (4..7).
  using Reach = std::array<uint8_t, 8>;

  // The cells without a stone; bits beyond the board are set, too.
  static Stones empty_cells(const State& state) {
    Stones empty;
    for (size_t word = 0; word < empty.size(); ++word) {
      empty[word] = ~(state.stones[0][word] | state.stones[1][word]);
    }
    return empty;
  }
  static bool has_stone(const Stones& stones, int cell) {
    return stones[static_cast<size_t>(cell >> 6)] >> (cell & 63) & 1;
  }
  static int run_length(const Stones& stones, int cell, int step, int reach) {
    int length = 0;
    while (length < reach && has_stone(stones, cell += step)) ++length;
    return length;
  }
  // Empty cells of the rows of five through a stone of a player.
  struct Around {
    Stones wins{};   // of rows with four stones of the player: moves that win at once
    Stones fours{};  // of rows with three, the rest empty: moves that make a four
  };
  Around around(const State& state, size_t player, int cell) const;
  // Removes the cells at which a stone makes no row that wins.
  void remove_long_rows(const Stones& stones, Stones& cells) const;
  // The empty cells with which `player` wins at once.
  Stones winning_cells(const State& state, size_t player) const;
  bool wins(const Stones& stones, int cell) const {
    const Reach& reach = reach_[static_cast<size_t>(cell)];
    for (size_t direction = 0; direction < 4; ++direction) {
      const int step = steps_[direction];
      const int length = 1 + run_length(stones, cell, step, reach[direction]) +
                         run_length(stones, cell, -step, reach[direction + 4]);
      if (exactly_five_ ? length == 5 : length >= 5) return true;
    }
    return false;
  }

  int size_;
  int num_cells_;
  size_t num_words_;
  bool exactly_five_;
  std::array<int, 4> steps_;  // cell offsets of the directions 0..3
  std::array<Reach, kMaxCells> reach_{};
  std::array<Stones, 4> row_starts_{};  // cells at which a row of five in direction 0..3 begins
  std::array<std::array<Key128, kMaxCells>, 2> stone_keys_{};
  std::array<std::array<uint16_t, kMaxCells>, kNumSquareSymmetries> transformed_{};
};

static_assert(HasDecisive<Gomoku> && HasForcingAfter<Gomoku>);
static_assert(sizeof(Gomoku::State) == 120 && std::is_trivially_copyable_v<Gomoku::State>);

}  // namespace tengen
