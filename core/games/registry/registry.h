#pragma once
// The native games by the names that `tengen train` takes. A game is registered by one row of
// NativeGames; everything else, the bindings too, goes through with_game.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "games/connect4/connect4.h"
#include "games/go/go.h"
#include "games/gomoku/gomoku.h"
#include "games/tictactoe/tictactoe.h"

namespace tengen {

// A row: what a game is called. This one is for a game of one name, its own.
template <Game G>
struct OneName {
  // The names in words, for messages.
  static std::string forms() { return G().name(); }
  // Those to list: all of them, or where nobody would read them all the usual ones.
  static std::vector<std::string> names() { return {G().name()}; }
  // The game that a name means, if it is one of this row. Throws Error for a name that is meant
  // for this row and has a size or rules that the game does not have.
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

// Lists the squares; there are rectangles and other rules too (games/go/rules/rules.h).
struct GoNames {
  static std::string forms();
  static std::vector<std::string> names();
  static std::optional<Go> make(const std::string& name);
};

template <class... Rows>
struct GameList {};

using NativeGames = GameList<OneName<TicTacToe>, OneName<Connect4>, GomokuNames, GoNames>;

// Names that with_game accepts, as the rows list them.
std::vector<std::string> known_games();

// Throws the Error of a name that no row knows.
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

// Calls f(game) with the concrete Game of that name, so that templates over games are entered once
// and run without virtual calls. f returns the same type for every game; the game lives until
// f returns. Throws Error for an unknown name or size.
template <class F>
auto with_game(const std::string& name, F&& f) {
  return with_game_of(NativeGames(), name, std::forward<F>(f));
}

}  // namespace tengen
