#include "games/tictactoe/tictactoe.h"

#include "games/perft.h"
#include "games/testing.h"

using namespace tengen;

int main() {
  const TicTacToe game;
  // Published counts of move sequences by length.
  const uint64_t expected[] = {1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872};
  for (int depth = 0; depth <= 9; ++depth) {
    TENGEN_CHECK(perft(game, game.initial_state(), depth) == expected[depth]);
  }
  for (uint64_t index = 0; index < 500; ++index) check_random_game(game, index);

  auto state = game.initial_state();
  for (const int action : {4, 0, 2, 6, 3, 5, 1, 7, 8}) game.apply(state, action);
  TENGEN_CHECK(game.outcome(state) == Outcome::kDraw);
  TENGEN_CHECK(game.to_string(state) ==
               "3 O X X\n"
               "2 X X O\n"
               "1 O O X\n"
               "  a b c\n"
               "draw");
  return 0;
}
