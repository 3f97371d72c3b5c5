"""Games by name: native ones, OpenSpiel's, and anyone's own as ``module:Class``."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, cast

from tengen._core import CoreError, known_games, make_game
from tengen.errors import UsageError, did_you_mean
from tengen.games.check import check_own_game
from tengen.games.openspiel import OPENSPIEL_PREFIX, OpenSpielGame
from tengen.games.protocol import Game, OwnGame
from tengen.games.python_game import PythonGame
from tengen.games.raised import RAISED

__all__ = ["make", "names"]

# Enough to meet a broken method at once, short enough to do at every start;
# `check_own_game` plays as many as one likes.
_NUM_CHECK_GAMES = 3


def names() -> list[str]:
    """Returns the names of the native games, as `make` takes them.

    Go has more: rectangles, and other rules (core/games/go/rules.h).
    """
    return list(known_games())


def make(name: str) -> Game:
    """Returns the game of that name.

    Args:
        name: A native game (``connect4``, ``gomoku/15``, ``gomoku/15/exact``,
            ``go/9``, ``go/9x13/simple/komi=6.5``; see `names`), a game of OpenSpiel
            (``openspiel/hex(board_size=5)``), or ``module:Class`` of an own game (see
            `tengen.games.OwnGame`). The module is looked for as Python does, and in the
            current directory; the class is called without arguments, and a few random
            games are played to check it.

    Raises:
        UsageError: There is no such game, an own game breaks the protocol, or a game of
            OpenSpiel does not fit.
    """
    if name.startswith(OPENSPIEL_PREFIX):
        return PythonGame(OpenSpielGame(name), name)
    if ":" in name:
        own = _load(name)
        check_own_game(own, name.partition(":")[2], num_games=_NUM_CHECK_GAMES)
        return PythonGame(own, name)
    try:
        return cast(Game, make_game(name))
    except CoreError as error:
        rule, _, advice = str(error).partition("; ")
        # Of a wrong size the core says more than a near name would.
        if not name.startswith(("gomoku", "go/")):
            advice = did_you_mean(name, names(), advice)
        raise UsageError(f"{rule}; {advice}") from error


def _load(name: str) -> OwnGame[Any]:
    """Imports ``module:Class`` and calls the class."""
    module_name, _, class_name = name.partition(":")
    if not module_name or not class_name:
        raise UsageError(
            f"task ({name}) must be module:Class; name a Python module and a class"
        )
    if os.getcwd() not in sys.path and "" not in sys.path:
        # A console script does not look in the current directory, `python -m` does.
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except RAISED as error:
        raise UsageError(
            f"task ({name}) must name a module that imports, but importing "
            f"{module_name} raised {type(error).__name__}: {error}; "
            f"correct it, or start where it lies"
        ) from error
    game_class = getattr(module, class_name, None)
    if not callable(game_class):
        classes = [key for key, value in vars(module).items() if callable(value)]
        advice = did_you_mean(class_name, classes, "define it there")
        raise UsageError(f"task ({name}) must name a class of {module_name}; {advice}")
    try:
        return cast(OwnGame[Any], game_class())
    except RAISED as error:
        raise UsageError(
            f"task ({name}) must be made without arguments, but {class_name}() raised "
            f"{type(error).__name__}: {error}; correct it"
        ) from error
