#pragma once
// The native games by the names that `tengen train` takes.

#include <string>
#include <utility>
#include <vector>

#include "games/connect4/connect4.h"
#include "games/go/go.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"

namespace tengen {

// Names that with_game accepts: all of them but those of Go on rectangles or with other rules than
// the usual ones, of which there are more than anybody reads.
std::vector<std::string> known_games();

// What a name says: the game and, where it has sizes or rules, those.
struct GameName {
  enum class Game { kTicTacToe, kConnect4, kGomoku, kGomokuExact, kGo };
  Game game;
  int gomoku_size = 0;
  GoRules go_rules = {};
};

// Throws Error for an unknown name or size.
GameName parse_game_name(const std::string& name);

// Calls f(game) with the concrete Game of that name, so that templates over games are entered once
// and run without virtual calls. f returns the same type for every game; the game lives until
// f returns. Throws Error for an unknown name or size.
template <class F>
auto with_game(const std::string& name, F&& f) {
  const GameName parsed = parse_game_name(name);
  switch (parsed.game) {
    case GameName::Game::kTicTacToe:
      return std::forward<F>(f)(TicTacToe());
    case GameName::Game::kConnect4:
      return std::forward<F>(f)(Connect4());
    case GameName::Game::kGomoku:
      return std::forward<F>(f)(Gomoku(parsed.gomoku_size));
    case GameName::Game::kGomokuExact:
      return std::forward<F>(f)(Gomoku(parsed.gomoku_size, true));
    case GameName::Game::kGo:
      break;
  }
  return std::forward<F>(f)(Go(parsed.go_rules));
}

}  // namespace tengen
