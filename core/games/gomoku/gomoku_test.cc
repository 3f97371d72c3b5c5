#include "games/gomoku/gomoku.h"

#include "base/error.h"
#include "games/perft.h"
#include "games/testing.h"

using namespace tengen;

namespace {

// The first player plays `stones` in that order; the second player's stones come from `others`.
Gomoku::State play(const Gomoku& game, const std::vector<int>& stones,
                   const std::vector<int>& others) {
  auto state = game.initial_state();
  for (size_t i = 0; i < stones.size(); ++i) {
    TENGEN_CHECK(game.is_legal(state, stones[i]));
    game.apply(state, stones[i]);
    if (i < others.size()) game.apply(state, others[i]);
  }
  return state;
}

void check_lines(int size) {
  const Gomoku freestyle(size);
  const int steps[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
  for (const auto& step : steps) {
    for (int start = 0; start < size * size; ++start) {
      const int end_row = start / size + 4 * step[0];
      const int end_column = start % size + 4 * step[1];
      const bool fits = end_row < size && end_column >= 0 && end_column < size;
      const int delta = step[0] * size + step[1];
      if (start + 4 * delta >= size * size) continue;
      // A "line" that crosses an edge must not win.
      for (int last = 0; last < 5; ++last) {
        auto state = freestyle.initial_state();
        std::vector<int> cells;
        for (int k = 0; k < 5; ++k) {
          if (k != last) cells.push_back(start + k * delta);
        }
        cells.push_back(start + last * delta);
        int other = 0;
        for (size_t i = 0; i < cells.size(); ++i) {
          freestyle.apply(state, cells[i]);
          if (i == 4) break;
          while (std::find(cells.begin(), cells.end(), other) != cells.end()) ++other;
          freestyle.apply(state, other);
          other += 2;  // so that the opponent never has five in a row
        }
        TENGEN_CHECK((freestyle.outcome(state) == Outcome::kFirstWins) == fits);
      }
    }
  }
}

}  // namespace

int main() {
  for (const int size : {5, 9, 19}) {
    check_lines(size);
    for (uint64_t index = 0; index < 60; ++index) {
      check_random_game(Gomoku(size), index);
      check_random_game(Gomoku(size, true), index);
    }
  }
  TENGEN_CHECK(perft(Gomoku(5), Gomoku(5).initial_state(), 4) == 25u * 24 * 23 * 22);

  // Six in a row wins in freestyle, but not with the exact rule.
  const Gomoku freestyle(9);
  const Gomoku exact(9, true);
  const std::vector<int> six = {0, 1, 2, 4, 5, 3};
  const std::vector<int> others = {80, 78, 76, 74, 72};
  TENGEN_CHECK(freestyle.outcome(play(freestyle, six, others)) == Outcome::kFirstWins);
  TENGEN_CHECK(exact.outcome(play(exact, six, others)) == Outcome::kOngoing);
  // A six in one direction and a five in another: with the exact rule the five wins.
  const std::vector<int> both = {0, 1, 2, 4, 5, 12, 21, 30, 39, 3};
  const std::vector<int> far = {80, 78, 76, 74, 72, 62, 60, 58, 56};
  TENGEN_CHECK(exact.outcome(play(exact, both, far)) == Outcome::kFirstWins);

  // The same stones in another order: different last move, planes and key.
  const auto a = play(freestyle, {0, 1}, {40});
  const auto b = play(freestyle, {1, 0}, {40});
  TENGEN_CHECK(a.key == b.key && !(freestyle.key(a) == freestyle.key(b)));

  for (const int size : {4, 20, -1}) {
    bool refused = false;
    try {
      Gomoku game(size);
    } catch (const Error&) {
      refused = true;
    }
    TENGEN_CHECK(refused);
  }
  return 0;
}
