#pragma once
// Games written in Python for the core: wraps a tengen.games.source.OwnGameSource.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "games/external/external_game.h"
#include "games/registry/registry.h"

namespace tengen {

// The game of an OwnGameSource, with its own positions. Requires the GIL, which is not required to
// destroy states. Raises the game's exceptions.
ExternalGame external_game(const nanobind::object& source);

// with_game() for the arguments of bindings: the name of a native game, or an OwnGameSource.
template <class F>
auto with_any_game(const nanobind::object& game, F&& f) {
  if (nanobind::isinstance<nanobind::str>(game)) {
    return with_game(nanobind::cast<std::string>(game), std::forward<F>(f));
  }
  return std::forward<F>(f)(external_game(game));
}

}  // namespace tengen
