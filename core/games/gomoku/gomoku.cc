#include "games/gomoku/gomoku.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "games/text.h"

namespace tengen {

namespace {

constexpr int kRow = 5;

int count(const Gomoku::Stones& cells) {
  int sum = 0;
  for (const uint64_t word : cells) sum += std::popcount(word);
  return sum;
}

// Returns `bits` shifted down by `by` places; only the first `num_words` words are in use.
Gomoku::Stones moved_down(const Gomoku::Stones& bits, int by, size_t num_words) {
  Gomoku::Stones moved{};
  const auto words = static_cast<size_t>(by) / 64;
  const int rest = by % 64;
  for (size_t i = 0; i + words < num_words; ++i) {
    moved[i] = bits[i + words] >> rest;
    if (rest > 0 && i + words + 1 < num_words) moved[i] |= bits[i + words + 1] << (64 - rest);
  }
  return moved;
}

// Adds `bits`, shifted up by `by` places, to `sum`.
void add_moved_up(const Gomoku::Stones& bits, int by, size_t num_words, Gomoku::Stones& sum) {
  const auto words = static_cast<size_t>(by) / 64;
  const int rest = by % 64;
  for (size_t i = words; i < num_words; ++i) {
    sum[i] |= bits[i - words] << rest;
    if (rest > 0 && i > words) sum[i] |= bits[i - words - 1] >> (64 - rest);
  }
}

}  // namespace

Gomoku::Gomoku(int size, bool exactly_five)
    : size_(size),
      num_cells_(size * size),
      num_words_(static_cast<size_t>(size * size + 63) / 64),
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
    for (size_t direction = 0; direction < 4; ++direction) {
      if (reach_[index][direction] < kRow - 1) continue;
      row_starts_[direction][index / 64] |= uint64_t{1} << (index % 64);
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

Gomoku::Stones Gomoku::winning_cells(const State& state, size_t player) const {
  Stones found{};
  const Stones& stones = state.stones[player];
  const Stones empty = empty_cells(state);
  // A row of five has four stones of the player and one empty cell, the k-th.
  for (size_t direction = 0; direction < 4; ++direction) {
    const int step = steps_[direction];
    std::array<Stones, kRow> own;
    for (int k = 0; k < kRow; ++k) {
      own[static_cast<size_t>(k)] = moved_down(stones, k * step, num_words_);
    }
    for (int k = 0; k < kRow; ++k) {
      Stones starts{};
      uint64_t any = 0;
      for (size_t word = 0; word < num_words_; ++word) {
        uint64_t all = row_starts_[direction][word];
        for (int other = 0; other < kRow; ++other) {
          if (other != k) all &= own[static_cast<size_t>(other)][word];
        }
        any |= starts[word] = all;
      }
      if (any != 0) add_moved_up(starts, k * step, num_words_, found);
    }
  }
  for (size_t word = 0; word < num_words_; ++word) found[word] &= empty[word];
  if (exactly_five_) remove_long_rows(stones, found);
  return found;
}

void Gomoku::remove_long_rows(const Stones& stones, Stones& cells) const {
  for (size_t word = 0; word < num_words_; ++word) {
    for_each_bit(cells[word], [&](int bit) {
      const int cell = static_cast<int>(word) * 64 + bit;
      if (!wins(stones, cell)) cells[word] &= ~(uint64_t{1} << bit);
    });
  }
}

Gomoku::Around Gomoku::around(const State& state, size_t player, int cell) const {
  Around found;
  const Stones& own = state.stones[player];
  const Stones& other = state.stones[1 - player];
  const Reach& reach = reach_[static_cast<size_t>(cell)];
  constexpr int kMost = kRow - 1;
  for (size_t direction = 0; direction < 4; ++direction) {
    const int step = steps_[direction];
    const int ahead = std::min<int>(reach[direction], kMost);
    const int behind = std::min<int>(reach[direction + 4], kMost);
    // Bit kMost + i stands for the i-th cell ahead.
    unsigned stones = 1u << kMost;
    unsigned empty = 0;
    for (int i = -behind; i <= ahead; ++i) {
      const int at = cell + i * step;
      if (i == 0 || has_stone(other, at)) continue;
      (has_stone(own, at) ? stones : empty) |= 1u << (kMost + i);
    }
    const auto add = [&](Stones& cells, unsigned bits) {
      for_each_bit(bits, [&](int bit) {
        const int at = cell + (bit - kMost) * step;
        cells[static_cast<size_t>(at >> 6)] |= uint64_t{1} << (at & 63);
      });
    };
    for (int start = kMost - behind; start <= ahead; ++start) {
      const unsigned row = 0x1fu << start;
      const unsigned rest = empty & row;
      const int num_stones = std::popcount(stones & row);
      if (num_stones + std::popcount(rest) != kRow) continue;
      if (num_stones == kRow - 1) add(found.wins, rest);
      if (num_stones == kRow - 2) add(found.fours, rest);
    }
  }
  if (exactly_five_) remove_long_rows(own, found.wins);
  return found;
}

Near Gomoku::near_after(const State& state, uint16_t* actions) const {
  if (state.ply < kFirstWinPly - 2) return {.is_open = true};
  if (state.ply == num_cells_) return {};
  const Stones threats =
      around(state, static_cast<size_t>(1 - to_play(state)), state.last_move).wins;
  const int num_threats = count(threats);
  if (num_threats == 0) return {.is_open = true};
  return {
      {.count = list_set_bits(threats.data(), num_cells_, actions), .is_lost = num_threats > 1}};
}

int Gomoku::forcing_after(const State& state, const uint16_t* before, int num_before, int action,
                          uint16_t* actions) const {
  Stones found = around(state, static_cast<size_t>(to_play(state)), action).fours;
  for (int i = 0; i < num_before; ++i) {
    const size_t cell = before[i];
    found[cell / 64] |= uint64_t{1} << (cell % 64);
  }
  const Stones empty = empty_cells(state);
  for (size_t word = 0; word < num_words_; ++word) found[word] &= empty[word];
  return list_set_bits(found.data(), num_cells_, actions);
}

int Gomoku::forcing_actions(const State& state, uint16_t* actions) const {
  const auto player = static_cast<size_t>(to_play(state));
  Stones found{};
  const Stones empty = empty_cells(state);
  // A row of five has three stones of the player and two empty cells, the i-th and the j-th.
  for (size_t direction = 0; direction < 4; ++direction) {
    const int step = steps_[direction];
    std::array<Stones, kRow> own;
    std::array<Stones, kRow> free;
    for (int k = 0; k < kRow; ++k) {
      own[static_cast<size_t>(k)] = moved_down(state.stones[player], k * step, num_words_);
      free[static_cast<size_t>(k)] = moved_down(empty, k * step, num_words_);
    }
    std::array<Stones, kRow> starts{};  // by the place of an empty cell
    std::array<uint64_t, kRow> any{};
    for (size_t word = 0; word < num_words_; ++word) {
      // Rows with so many stones of the player among the cells so far, and the rest empty.
      uint64_t of[4] = {row_starts_[direction][word], 0, 0, 0};
      for (size_t k = 0; k < kRow; ++k) {
        for (size_t n = 3; n > 0; --n) {
          of[n] = (of[n] & free[k][word]) | (of[n - 1] & own[k][word]);
        }
        of[0] &= free[k][word];
      }
      for (size_t k = 0; k < kRow; ++k) any[k] |= starts[k][word] = of[3] & free[k][word];
    }
    for (int k = 0; k < kRow; ++k) {
      if (any[static_cast<size_t>(k)] == 0) continue;
      add_moved_up(starts[static_cast<size_t>(k)], k * step, num_words_, found);
    }
  }
  return list_set_bits(found.data(), num_cells_, actions);
}

Near Gomoku::near_actions(const State& state, uint16_t* actions) const {
  // Only a player with four stones can complete a row.
  if (state.ply < kFirstWinPly - 2) return {.is_open = true};
  if (outcome(state) != Outcome::kOngoing) return {};
  const auto own = static_cast<size_t>(to_play(state));
  const Stones winning = winning_cells(state, own);
  if (count(winning) > 0) {
    return {{.count = list_set_bits(winning.data(), num_cells_, actions), .is_won = true}};
  }
  // A stone takes only one cell from the opponent. A lost side tries that, too.
  const Stones threats = winning_cells(state, 1 - own);
  const int num_threats = count(threats);
  if (num_threats == 0) return {.is_open = true};
  return {
      {.count = list_set_bits(threats.data(), num_cells_, actions), .is_lost = num_threats > 1}};
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
