#pragma once
// Tic-tac-toe: 3 x 3, three in a row win. The smallest game, for end-to-end tests.
//
// Actions: row * 3 + column, row 0 at the top. Planes (3): on the board, own stones, opponent
// stones (games/planes.h). Symmetries: the 8 of the square (games/symmetry.h).

#include <array>
#include <bit>
#include <string>

#include "games/bits.h"
#include "games/decisive.h"
#include "games/game.h"
#include "games/planes.h"
#include "games/symmetry.h"

namespace tengen {

class TicTacToe {
 public:
  static constexpr int kSize = 3;
  static constexpr int kNumCells = 9;

  struct State {
    std::array<uint16_t, 2> stones{};  // bit row * 3 + column: first player's, second player's
  };

  std::string name() const { return "tictactoe"; }
  int num_actions() const { return kNumCells; }
  int num_planes() const { return 3; }
  int height() const { return kSize; }
  int width() const { return kSize; }
  int max_plies() const { return kNumCells; }
  PolicyLayout policy_layout() const { return PolicyLayout::kCells; }
  int num_symmetries() const { return kNumSquareSymmetries; }

  State initial_state() const { return {}; }
  int ply(const State& state) const { return std::popcount(occupied(state)); }
  int to_play(const State& state) const { return ply(state) & 1; }

  Outcome outcome(const State& state) const {
    if (has_line(state.stones[0])) return Outcome::kFirstWins;
    if (has_line(state.stones[1])) return Outcome::kSecondWins;
    return occupied(state) == kAllCells ? Outcome::kDraw : Outcome::kOngoing;
  }

  int legal_actions(const State& state, uint16_t* actions) const {
    if (outcome(state) != Outcome::kOngoing) return 0;
    const uint64_t empty = kAllCells & ~occupied(state);
    return list_set_bits(&empty, kNumCells, actions);
  }
  Decisive decisive_actions(const State& state, uint16_t* actions) const {
    Decisive found{.count = legal_actions(state, actions)};
    if (found.count == 0) return found;
    const auto own = static_cast<size_t>(to_play(state));
    const uint64_t winning = third_cells(state.stones[own], state.stones[1 - own]);
    if (winning != 0) {
      return {.count = list_set_bits(&winning, kNumCells, actions), .is_won = true};
    }
    const uint64_t threats = third_cells(state.stones[1 - own], state.stones[own]);
    found.is_lost = std::popcount(threats) > 1;
    if (std::popcount(threats) == 1) found.count = list_set_bits(&threats, kNumCells, actions);
    return found;
  }
  bool is_legal(const State& state, int action) const {
    return action >= 0 && action < kNumCells && (occupied(state) >> action & 1) == 0 &&
           outcome(state) == Outcome::kOngoing;
  }
  void apply(State& state, int action) const {
    uint16_t& own = state.stones[static_cast<size_t>(to_play(state))];
    own = static_cast<uint16_t>(own | 1u << action);
  }

  // Returns an exact key: different positions have different keys.
  Key128 key(const State& state) const {
    return combine(zobrist_key(kKeyTable, 0), state.stones[0] | uint64_t{state.stones[1]} << 16);
  }
  void encode(const State& state, int symmetry, float* planes) const;
  const uint16_t* images(const State&, int symmetry) const {
    return kImages[static_cast<size_t>(symmetry)].data();
  }
  std::string to_string(const State& state) const;

 private:
  static constexpr uint64_t kKeyTable = 1;
  static constexpr auto kImages = make_square_images<kSize>();
  static constexpr unsigned kAllCells = 0b111'111'111;
  static constexpr std::array<unsigned, 8> kLines = {
      0b000'000'111, 0b000'111'000, 0b111'000'000,  // rows
      0b001'001'001, 0b010'010'010, 0b100'100'100,  // columns
      0b100'010'001, 0b001'010'100};                // diagonals

  static unsigned occupied(const State& state) {
    return static_cast<unsigned>(state.stones[0] | state.stones[1]);
  }
  // The cells that complete a line of `stones` and are not taken by `others`.
  static uint64_t third_cells(unsigned stones, unsigned others) {
    unsigned found = 0;
    for (const unsigned line : kLines) {
      if (std::popcount(line & stones) == 2) found |= line & ~stones;
    }
    return found & ~others;
  }
  static bool has_line(unsigned stones) {
    for (const unsigned line : kLines) {
      if ((stones & line) == line) return true;
    }
    return false;
  }
};

static_assert(HasDecisive<TicTacToe>);

}  // namespace tengen
