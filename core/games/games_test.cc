// Plays random games of every native game, for sanitizers. tests/unit/games compares rules, planes
// and scores with slow implementations.

#include <algorithm>
#include <string>
#include <vector>

#include "games/bits.h"
#include "games/gomoku/gomoku.h"
#include "games/registry/registry.h"
#include "games/testing.h"

using namespace tengen;

namespace {

void check_bits() {
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  for (int num_bits = 0; num_bits <= 192; ++num_bits) {
    const uint64_t words[3] = {rng.next64(), rng.next64() & rng.next64(), ~uint64_t{0}};
    std::vector<uint16_t> expected;
    for (int bit = 0; bit < num_bits; ++bit) {
      if (words[bit / 64] >> (bit % 64) & 1) expected.push_back(static_cast<uint16_t>(bit));
    }
    // One guard value beyond the required space.
    std::vector<uint16_t> out(static_cast<size_t>(num_bits) + 1, 0xfefe);
    const int count = list_set_bits(words, num_bits, out.data());
    TENGEN_CHECK(out.back() == 0xfefe);
    out.resize(static_cast<size_t>(count));
    TENGEN_CHECK(out == expected);
  }
}

constexpr int kSteps[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};

// Five stones in a row from `start` win if they fit on the board, whichever of them is played last.
void check_line(const Gomoku& game, int start, const int (&step)[2]) {
  const int size = game.height();
  const int delta = step[0] * size + step[1];
  const int end_column = start % size + 4 * step[1];
  const bool fits = start / size + 4 * step[0] < size && end_column >= 0 && end_column < size;
  if (start + 4 * delta >= size * size) return;
  for (int last = 0; last < 5; ++last) {
    std::vector<int> cells;
    for (int k = 0; k < 5; ++k) {
      if (k != last) cells.push_back(start + k * delta);
    }
    cells.push_back(start + last * delta);
    auto state = game.initial_state();
    int other = 0;
    for (const int cell : cells) {
      game.apply(state, cell);
      if (cell == cells.back()) break;
      while (std::find(cells.begin(), cells.end(), other) != cells.end()) ++other;
      game.apply(state, other);
      other += 2;  // so that the opponent never has five in a row
    }
    TENGEN_CHECK((game.outcome(state) == Outcome::kFirstWins) == fits);
  }
}

}  // namespace

int main() {
  check_bits();
  for (const int size : {5, 9, 19}) {
    for (const auto& step : kSteps) {
      for (int start = 0; start < size * size; ++start) check_line(Gomoku(size), start, step);
    }
  }
  for (const std::string name :
       {"tictactoe", "connect4", "gomoku/5", "gomoku/9/exact", "gomoku/19", "go/2", "go/3/simple",
        "go/5/situational", "go/7x4/simple/nosuicide", "go/9", "go/19",
        "go/5/nosuicide/planes=minigo", "go/4x6/planes=minigo", "go/4x6/planes=katago",
        "go/5/simple/planes=katago"}) {
    const uint64_t num_games = name == "go/19" ? 2 : name.starts_with("go/") ? 20 : 60;
    with_game(name, [num_games](const auto& game) {
      for (uint64_t index = 0; index < num_games; ++index) check_random_game(game, index);
    });
  }
  return 0;
}
