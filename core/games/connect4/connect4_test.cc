#include "games/connect4/connect4.h"

#include "games/perft.h"
#include "games/testing.h"

using namespace tengen;

int main() {
  const Connect4 game;
  const uint64_t expected[] = {1, 7, 49, 343, 2401, 16807, 117649, 823536};
  for (int depth = 0; depth <= 7; ++depth) {
    TENGEN_CHECK(perft(game, game.initial_state(), depth) == expected[depth]);
  }
  for (uint64_t index = 0; index < 500; ++index) check_random_game(game, index);

  auto state = game.initial_state();
  for (const int action : {3, 3, 2, 2, 4, 4, 5}) game.apply(state, action);
  TENGEN_CHECK(game.outcome(state) == Outcome::kFirstWins);
  TENGEN_CHECK(game.to_string(state) ==
               ". . . . . . .\n"
               ". . . . . . .\n"
               ". . . . . . .\n"
               ". . . . . . .\n"
               ". . O O O . .\n"
               ". . X X X X .\n"
               "0 1 2 3 4 5 6\n"
               "X wins");

  // A full column accepts no more stones.
  auto full = game.initial_state();
  for (int i = 0; i < 6; ++i) game.apply(full, 2);
  TENGEN_CHECK(!game.is_legal(full, 2) && game.is_legal(full, 3));
  return 0;
}
