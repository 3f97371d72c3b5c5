#pragma once
// Makes games written in Python available to the core: wraps a tengen.games.source.OwnGameSource.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "games/external/external_game.h"
#include "games/registry/registry.h"

namespace tengen {

// Returns the game of an OwnGameSource, with its own positions. Requires the GIL, which is not
// needed to destroy states. Raises the game's exceptions.
ExternalGame external_game(const nanobind::object& source);

// Like with_game(), but `game` may also be an OwnGameSource instead of the name of a native game.
template <class F>
auto with_any_game(const nanobind::object& game, F&& f) {
  if (nanobind::isinstance<nanobind::str>(game)) {
    return with_game(nanobind::cast<std::string>(game), std::forward<F>(f));
  }
  return std::forward<F>(f)(external_game(game));
}

}  // namespace tengen
