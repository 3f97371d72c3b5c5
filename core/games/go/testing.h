#pragma once
// Builds Go positions from diagrams, for the native tests.

#include <string>
#include <vector>

#include "base/testing.h"
#include "games/go/go.h"

namespace tengen {

// Returns the game of the task `name`.
inline Go go_game(const std::string& name) { return Go(parse_go_name(name)); }

// Returns the position of a diagram, with `to_play` to move. A diagram has rows of "X", "O" and
// ".", from the top, separated by spaces. Stones are placed alternately; the side with fewer stones
// passes in between.
inline GoState go_position(const Go& game, const std::string& diagram, uint8_t to_play = kGoBlack) {
  std::vector<int> stones[2];
  int point = 0;
  for (const char cell : diagram) {
    if (cell == 'X') stones[0].push_back(point);
    if (cell == 'O') stones[1].push_back(point);
    point += cell != ' ';
  }
  TENGEN_CHECK(point == game.num_actions() - 1);
  GoState state = game.initial_state();
  const size_t num_rounds = std::max(stones[0].size(), stones[1].size());
  for (size_t i = 0; i < num_rounds; ++i) {
    for (const auto& own : stones) {
      const int action = i < own.size() ? own[i] : point;
      TENGEN_CHECK(game.is_legal(state, action));
      game.apply(state, action);
    }
  }
  if (to_play != kGoBlack) game.apply(state, point);
  TENGEN_CHECK(state.to_play == to_play && game.outcome(state) == Outcome::kOngoing);
  return state;
}

// Returns the action of a point such as "C3", or of "pass".
inline int go_action(const Go& game, const std::string& name) {
  if (name == "pass") return game.num_actions() - 1;
  const int row = game.height() - std::stoi(name.substr(1));
  return row * game.width() + static_cast<int>(std::string("ABCDEFGHJKLMNOPQRST").find(name[0]));
}

// Plays `moves`, which must be legal.
inline void go_play(const Go& game, GoState& state, const std::vector<std::string>& moves) {
  for (const std::string& move : moves) {
    TENGEN_CHECK(game.is_legal(state, go_action(game, move)));
    game.apply(state, go_action(game, move));
  }
}

// Returns the areas as rows of "X", "O" and ".", separated by spaces.
inline std::string go_diagram(const Go& game, const GoAreas& areas) {
  std::string text;
  for (int point = 0; point < game.num_actions() - 1; ++point) {
    if (point > 0 && point % game.width() == 0) text += ' ';
    text += areas[kGoBlack].has(point) ? 'X' : areas[kGoWhite].has(point) ? 'O' : '.';
  }
  return text;
}

}  // namespace tengen
