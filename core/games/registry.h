#pragma once
// The native games by the names that `tengen train` takes.

#include <string>
#include <utility>
#include <vector>

#include "games/connect4/connect4.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"

namespace tengen {

// Every name that with_game accepts.
std::vector<std::string> known_games();

// What a name says: the rules and, where they have sizes, the size.
struct GameName {
  enum class Rules { kTicTacToe, kConnect4, kGomoku, kGomokuExact };
  Rules rules;
  int size;  // 0 where the rules have one size
};

// Throws Error for an unknown name or size.
GameName parse_game_name(const std::string& name);

// Calls f(game) with the concrete Game of that name, so that templates over games are entered once
// and run without virtual calls. f returns the same type for every game; the game lives until
// f returns. Throws Error for an unknown name or size.
template <class F>
auto with_game(const std::string& name, F&& f) {
  const GameName parsed = parse_game_name(name);
  switch (parsed.rules) {
    case GameName::Rules::kTicTacToe:
      return std::forward<F>(f)(TicTacToe());
    case GameName::Rules::kConnect4:
      return std::forward<F>(f)(Connect4());
    case GameName::Rules::kGomoku:
      return std::forward<F>(f)(Gomoku(parsed.size));
    case GameName::Rules::kGomokuExact:
      break;
  }
  return std::forward<F>(f)(Gomoku(parsed.size, true));
}

}  // namespace tengen
