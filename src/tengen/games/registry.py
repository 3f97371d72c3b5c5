"""Games by name: native games, OpenSpiel's, and users' own as ``module:Class``."""

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

__all__ = ["is_game", "make", "names", "open_game"]

# Enough to find a broken method, and short enough to play at every start;
# `check_own_game` plays any number.
_NUM_CHECK_GAMES = 3

show_native_states()


def names() -> list[str]:
    """Returns the names of the native games, as `make` takes them.

    Go has more: rectangles, and other rules (core/games/go/rules/rules.h).
    """
    return list(known_games())


def is_game(task: str) -> bool:
    """Returns whether a task is a game by its name, of whatever size or rules.

    ``module:Name`` is imported, for it may be an environment as well.

    Raises:
        UsageError: It is ``module:Name`` and was not typed, see `tengen.games.typed`,
            or it cannot be imported.
    """
    if is_program(task):
        check_allowed(task)
        return not makes_environment(task)
    families = {name.split("/")[0] for name in names()}
    return task.startswith(OPENSPIEL_PREFIX) or task.split("/")[0] in families


def make(name: str) -> Game:
    """Returns the game of that name. Only for names that users type; see `open_game`.

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
    if is_program(name):
        own = make_program(name)
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


def open_game(task: str) -> Game:
    """Returns the game of a task, wherever its name was read; used inside tengen.

    Args:
        task: As for `make`. ``module:Class`` must have been typed in this process's
            call, see `tengen.games.typed`; otherwise nothing is imported.

    Raises:
        UsageError: As for `make`, or it was not typed.
    """
    check_allowed(task)
    return make(task)
