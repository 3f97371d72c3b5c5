"""Finds games by name: native games, OpenSpiel games, and user-defined games."""

from __future__ import annotations

from typing import cast

from tengen._core import CoreError, known_games, make_game
from tengen.errors import UsageError, did_you_mean
from tengen.games.check import check_own_game
from tengen.games.openspiel import OPENSPIEL_PREFIX, OpenSpielGame
from tengen.games.program import make_program, makes_environment
from tengen.games.protocol import Game
from tengen.games.python_game import PythonGame, show_native_states
from tengen.games.typed import check_allowed, is_program

# Random games that `make` plays to check a user's game: few enough for every start, and
# sufficient to find a broken method.
_NUM_CHECK_GAMES = 3

show_native_states()


def names() -> list[str]:
    """Returns the names of the native games, which `make` accepts.

    The list omits names of Go with rectangular boards and other rules, which
    core/games/go/rules/rules.h describes.
    """
    return list(known_games())


def is_game(task: str) -> bool:
    """Returns whether ``task`` names a game, and not an environment.

    To decide this for ``module:Name``, imports the module.

    Raises:
        UsageError: ``module:Name`` cannot be imported, or the user did not type it (see
            `tengen.games.typed`).
    """
    if is_program(task):
        check_allowed(task)
        return not makes_environment(task)
    families = {name.split("/")[0] for name in names()}
    return task.startswith(OPENSPIEL_PREFIX) or task.split("/")[0] in families


def make(name: str) -> Game:
    """Returns the game ``name``. For a name that comes from a file, use `open_game`.

    Args:
        name: A native game (``connect4``, ``gomoku/15``, ``gomoku/15/exact``, ``go/9``,
            ``go/9x13/simple/komi=6.5``; see `names`), an OpenSpiel game
            (``openspiel/hex(board_size=5)``), or ``module:Class`` for a user's game
            (see `tengen.games.OwnGame`). The module is searched for on Python's path
            and in the current directory. The class is called without arguments, and the
            game is checked with a few random games.

    Raises:
        UsageError: The game does not exist, a user's game breaks the protocol, or an
            OpenSpiel game is not supported.
    """
    if name.startswith(OPENSPIEL_PREFIX):
        return PythonGame(OpenSpielGame(name), name)
    if is_program(name):
        own = make_program(name)
        check_own_game(own, name.partition(":")[2], num_games=_NUM_CHECK_GAMES)
        return PythonGame(own, name)
    try:
        return cast(Game, make_game(name))
    except CoreError as error:
        rule, _, advice = str(error).partition("; ")
        # For gomoku and Go usually only the size is wrong; then the core's advice helps
        # more than a similar name.
        if not name.startswith(("gomoku", "go/")):
            advice = did_you_mean(name, names(), advice)
        raise UsageError(f"{rule}; {advice}") from error


def open_game(task: str) -> Game:
    """Returns the game ``task``, whose name may come from a file.

    Args:
        task: The game's name, as for `make`. ``module:Class`` is imported only if the
            user typed it in this process (see `tengen.games.typed`).

    Raises:
        UsageError: As for `make`, or the user did not type ``module:Class``.
    """
    check_allowed(task)
    return make(task)
