#pragma once
// Finds native games by the names that `tengen train` accepts. A row of NativeGames registers a
// game; all other code, including the bindings, uses with_game().

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "games/connect4/connect4.h"
#include "games/go/go.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"

namespace tengen {

// The registry row of a game with a single name.
template <Game G>
struct OneName {
  // Returns a description of the accepted names, for error messages.
  static std::string forms() { return G().name(); }
  // Returns the names to list: all names, or only the usual ones if there are too many.
  static std::vector<std::string> names() { return {G().name()}; }
  // Returns the game `name`, or nullopt if this row does not cover the name. Throws Error if the
  // row covers the name but not its size or rules.
  static std::optional<G> make(const std::string& name) {
    G game;
    if (name != game.name()) return std::nullopt;
    return game;
  }
};

struct GomokuNames {
  static std::string forms();
  static std::vector<std::string> names();
  static std::optional<Gomoku> make(const std::string& name);
};

// The registry row of Go. names() lists only square boards; make() also accepts rectangles and
// other rules.
struct GoNames {
  static std::string forms();
  static std::vector<std::string> names();
  static std::optional<Go> make(const std::string& name);
};

template <class... Rows>
struct GameList {};

using NativeGames = GameList<OneName<TicTacToe>, OneName<Connect4>, GomokuNames, GoNames>;

// Returns all names that the rows list; with_game() may accept more.
std::vector<std::string> known_games();

// Throws the Error for an unknown game name.
[[noreturn]] void refuse_game_name(const std::string& name);

template <class F, class Row, class... Rows>
auto with_game_of(GameList<Row, Rows...>, const std::string& name, F&& f) {
  auto game = Row::make(name);
  if (game) return std::forward<F>(f)(*std::move(game));
  if constexpr (sizeof...(Rows) > 0) {
    return with_game_of(GameList<Rows...>(), name, std::forward<F>(f));
  } else {
    refuse_game_name(name);
  }
}

// Calls f(game) with the game `name` as its concrete type, so that templates over games are
// instantiated once and run without virtual calls. f returns the same type for every game; the game
// lives until f returns. Throws Error for an unknown name or size.
template <class F>
auto with_game(const std::string& name, F&& f) {
  return with_game_of(NativeGames(), name, std::forward<F>(f));
}

}  // namespace tengen
