// An exact Connect Four solver, the yardstick for trained players. Shares no code with
// the core. connect4_solver.py compiles and calls it.
//
// Negamax with alpha-beta over bitboards. A column is seven bits, the lowest cell first, its top
// bit always empty. A score is 22 minus the winner's stones at the end of the game: positive
// if the side to move wins, higher for a faster win, 0 for a draw.
//
// Optimizations: a move that allows an immediate win by the opponent is never searched; moves
// are ordered by the number of winning cells that they create, then from the centre outwards;
// bounds on scores are stored in a table and prefetched, and the bounds of all moves are looked
// up before the first is searched; every search uses a null window.
// Source of the method: Allis 1988, "A knowledge-based approach of Connect-Four" (threats);
// Plaat 1996, "Best-first fixed-depth minimax algorithms" (null windows with a table).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using Board = uint64_t;

constexpr int kHeight = 6;
constexpr int kWidth = 7;
constexpr int kNumCells = kHeight * kWidth;
constexpr int kStride = kHeight + 1;
constexpr int kMaxScore = 18;  // the fastest win: four stones

constexpr Board column_mask(int column) {
  return ((Board{1} << kHeight) - 1) << (column * kStride);
}
constexpr Board bottom_cell(int column) { return Board{1} << (column * kStride); }

constexpr Board kBottom = [] {
  Board bottom = 0;
  for (int column = 0; column < kWidth; ++column) bottom |= bottom_cell(column);
  return bottom;
}();
constexpr Board kCells = kBottom * ((Board{1} << kHeight) - 1);

// Empty cells that would make four of `stones`, whether or not they can be played now.
Board winning_cells(Board stones, Board occupied) {
  Board cells = (stones << 1) & (stones << 2) & (stones << 3);  // upwards
  for (const int step : {kStride, kStride - 1, kStride + 1}) {
    const Board two_below = (stones << step) & (stones << (2 * step));
    cells |= two_below & (stones << (3 * step));
    cells |= two_below & (stones >> step);
    const Board two_above = (stones >> step) & (stones >> (2 * step));
    cells |= two_above & (stones << step);
    cells |= two_above & (stones >> (3 * step));
  }
  return cells & (kCells & ~occupied);
}

struct Position {
  Board own = 0;  // of the side to move
  Board occupied = 0;
  int ply = 0;

  Board playable() const { return (occupied + kBottom) & kCells; }
  Board opponent() const { return own ^ occupied; }
  bool wins_now() const { return winning_cells(own, occupied) & playable(); }
  Position after(Board cell) const { return {opponent(), occupied | cell, ply + 1}; }
  uint64_t key() const { return own + occupied + kBottom; }

  // Moves after which the opponent cannot win immediately; empty if there are none.
  Board safe_moves() const {
    Board moves = playable();
    const Board threats = winning_cells(opponent(), occupied);
    const Board forced = moves & threats;
    if (forced) {
      if (forced & (forced - 1)) return 0;  // two threats at once
      moves = forced;
    }
    return moves & ~(threats >> 1);  // not below a cell where the opponent wins
  }
};

// Bounds on scores by position. An entry holds key and bound; new entries overwrite old ones.
class Table {
 public:
  // 0: nothing known; 1..37: at most value - 19; 38 and more: at least value - 56.
  static constexpr int kUpper = kMaxScore + 1;
  static constexpr int kLower = 3 * kMaxScore + 2;

  Table() : entries_(std::size_t{1} << kBits) {}

  void prefetch(uint64_t key) const { __builtin_prefetch(&entries_[slot(key)]); }
  int get(uint64_t key) const {
    const uint64_t entry = entries_[slot(key)];
    return entry >> 8 == key ? static_cast<int>(entry & 0xff) : 0;
  }
  void put(uint64_t key, int value) {
    entries_[slot(key)] = key << 8 | static_cast<uint64_t>(value);
  }

 private:
  static constexpr int kBits = 23;
  static std::size_t slot(uint64_t key) { return key * 0x9e3779b97f4a7c15ull >> (64 - kBits); }
  std::vector<uint64_t> entries_;
};

class Solver {
 public:
  // Whether the value to play is at most `value`, which is -1 (lost) or 0 (drawn).
  bool is_at_most(const Position& position, int value) {
    if (position.ply == kNumCells) return value == 0;
    return !position.wins_now() && search(position, value, value + 1) <= value;
  }

  int score(const Position& position) {
    if (position.ply == kNumCells) return 0;
    if (position.wins_now()) return (kNumCells + 1 - position.ply) / 2;
    int low = -(kNumCells - position.ply) / 2;
    int high = (kNumCells + 1 - position.ply) / 2;
    while (low < high) {
      // Windows near a draw first, because they decide most positions.
      int middle = low + (high - low) / 2;
      if (middle <= 0 && low / 2 < middle) {
        middle = low / 2;
      } else if (middle >= 0 && high / 2 > middle) {
        middle = high / 2;
      }
      const int found = search(position, middle, middle + 1);
      (found <= middle ? high : low) = found;
    }
    return low;
  }

 private:
  // Near the end, a lookup of every move's bound costs more than it saves.
  static constexpr int kLastBoundsPly = 30;

  // A bound on the score, exact inside (alpha, beta). The side to move has no immediate win.
  int search(const Position& position, int alpha, int beta) {
    const Board moves = position.safe_moves();
    if (moves == 0) return -(kNumCells - position.ply) / 2;
    if (position.ply >= kNumCells - 2) return 0;

    const int worst = -(kNumCells - 2 - position.ply) / 2;  // not lost at the next move
    if (alpha < worst) {
      alpha = worst;
      if (alpha >= beta) return alpha;
    }
    int best_possible = (kNumCells - 1 - position.ply) / 2;
    const uint64_t key = position.key();
    if (const int known = table_.get(key); known >= 2 * Table::kUpper) {
      const int lower = known - Table::kLower;
      if (alpha < lower) {
        alpha = lower;
        if (alpha >= beta) return alpha;
      }
    } else if (known != 0) {
      best_possible = known - Table::kUpper;
    }
    if (beta > best_possible) {
      beta = best_possible;
      if (alpha >= beta) return beta;
    }

    std::array<Board, kWidth> order;
    std::array<int, kWidth> threats;
    int count = 0;
    for (const int column : {0, 6, 1, 5, 2, 4, 3}) {
      const Board move = moves & column_mask(column);
      if (move == 0) continue;
      const int num_threats =
          std::popcount(winning_cells(position.own | move, position.occupied | move));
      table_.prefetch(position.after(move).key());
      int place = count++;
      for (; place > 0 && threats[place - 1] > num_threats; --place) {
        order[place] = order[place - 1];
        threats[place] = threats[place - 1];
      }
      order[place] = move;
      threats[place] = num_threats;
    }
    for (int i = count - 1; i >= 0 && position.ply < kLastBoundsPly; --i) {
      const int known = table_.get(position.after(order[i]).key());
      if (known == 0 || known >= 2 * Table::kUpper) continue;
      if (const int lower = Table::kUpper - known; lower >= beta) {
        table_.put(key, lower + Table::kLower);
        return lower;
      }
    }
    // The best moves are last; among equals, the one nearest to the centre.
    while (count-- > 0) {
      const int found = -search(position.after(order[count]), -beta, -alpha);
      if (found >= beta) {
        table_.put(key, found + Table::kLower);
        return found;
      }
      if (found > alpha) alpha = found;
    }
    table_.put(key, alpha + Table::kUpper);
    return alpha;
  }

  Table table_;
};

Solver& solver() {
  static Solver instance;
  return instance;
}

// Plays `moves`. Returns 0, or the index (from 1) of the first move that cannot be played, or
// num_moves + 1 if the game is finished.
int play(const uint8_t* moves, int num_moves, Position& position) {
  for (int i = 0; i <= num_moves; ++i) {
    const Board last = position.opponent();
    for (const int step : {1, kStride, kStride - 1, kStride + 1}) {
      const Board pairs = last & (last >> step);
      if (pairs & (pairs >> (2 * step))) return i + 1;
    }
    if (i == num_moves) break;
    const Board cell = moves[i] < kWidth ? position.playable() & column_mask(moves[i]) : Board{0};
    if (cell == 0) return i + 1;
    position = position.after(cell);
  }
  return position.ply == kNumCells ? num_moves + 1 : 0;
}

}  // namespace

// Sets `value` to the value to play after `moves` (1 won, 0 drawn, -1 lost) and the bits of
// `optimal` to the columns that preserve it. Returns what `play` returns. Not thread-safe.
extern "C" int connect4_optimal(const uint8_t* moves, int num_moves, int* value, int* optimal) {
  Position position;
  if (const int wrong = play(moves, num_moves, position)) return wrong;
  const Board wins = winning_cells(position.own, position.occupied) & position.playable();
  // Won unless at most drawn; the value of the side to move is the maximum over its moves.
  *value = wins || !solver().is_at_most(position, 0) ? 1 : -1;
  if (*value < 0 && !solver().is_at_most(position, -1)) *value = 0;
  *optimal = 0;
  for (int column = 0; column < kWidth; ++column) {
    const Board cell = position.playable() & column_mask(column);
    if (cell == 0) continue;
    const bool keeps =
        *value < 0 || (cell & wins) != 0 || solver().is_at_most(position.after(cell), -*value);
    *optimal |= keeps << column;
  }
  return 0;
}

// Sets the score to play of each of the seven columns after `moves`, -100 for a full one.
// Returns what `play` returns. Not thread-safe.
extern "C" int connect4_scores(const uint8_t* moves, int num_moves, int* scores) {
  Position position;
  if (const int wrong = play(moves, num_moves, position)) return wrong;
  const Board wins = winning_cells(position.own, position.occupied);
  for (int column = 0; column < kWidth; ++column) {
    const Board cell = position.playable() & column_mask(column);
    if (cell == 0) {
      scores[column] = -100;
    } else if (cell & wins) {
      scores[column] = (kNumCells + 1 - position.ply) / 2;
    } else {
      scores[column] = -solver().score(position.after(cell));
    }
  }
  return 0;
}
