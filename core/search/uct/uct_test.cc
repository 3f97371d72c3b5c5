#include "search/uct/uct.h"

#include "base/testing.h"
#include "games/tictactoe/tictactoe.h"

using namespace tengen;

namespace {

Rng stream(uint64_t index) { return Rng(1, 0, index, 0, Purpose::kRollout); }

}  // namespace

int main() {
  const TicTacToe game;
  auto state = game.initial_state();
  for (const int action : {0, 4, 1, 5}) game.apply(state, action);
  // X wins at 2. With O to move after 8, O must play 2 (3 wins for O).
  for (uint64_t index = 0; index < 20; ++index) {
    TENGEN_CHECK(Uct<TicTacToe>(game, 200).choose(state, stream(index)) == 2);
  }
  game.apply(state, 8);
  TENGEN_CHECK(Uct<TicTacToe>(game, 200).choose(state, stream(0)) == 3);
  // One legal move and no playouts: still returns a move.
  for (const int action : {2, 3, 6}) {
    if (game.is_legal(state, action)) game.apply(state, action);
  }
  while (game.outcome(state) == Outcome::kOngoing) {
    const int action = Uct<TicTacToe>(game, 0).choose(state, stream(1));
    TENGEN_CHECK(game.is_legal(state, action));
    game.apply(state, action);
  }
  bool refused = false;
  try {
    Uct<TicTacToe>(game, 10).choose(state, stream(2));
  } catch (const Error&) {
    refused = true;
  }
  TENGEN_CHECK(refused);

  // mcts:100 beats random play.
  int num_won = 0;
  int num_lost = 0;
  for (uint64_t index = 0; index < 40; ++index) {
    auto position = game.initial_state();
    const int player = static_cast<int>(index & 1);
    Rng random(2, 0, index, 0, Purpose::kTest);
    uint16_t legal[9];
    while (game.outcome(position) == Outcome::kOngoing) {
      const int n = game.legal_actions(position, legal);
      const int action =
          game.to_play(position) == player
              ? Uct<TicTacToe>(game, 100).choose(
                    position,
                    Rng(1, 0, index, static_cast<uint32_t>(game.ply(position)), Purpose::kRollout))
              : legal[random.below(static_cast<uint32_t>(n))];
      game.apply(position, action);
    }
    const float value = value_to_first(game.outcome(position));
    const float own = player == 0 ? value : -value;
    num_won += own > 0.0f;
    num_lost += own < 0.0f;
  }
  TENGEN_CHECK(num_won > 30 && num_lost < 4);
  return 0;
}
