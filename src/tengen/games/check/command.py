"""``tengen game check``: plays random games and reports errors in a game's rules."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check, check_range
from tengen.games.check import check_own_game
from tengen.games.openspiel import OPENSPIEL_PREFIX, OpenSpielGame
from tengen.games.program import make_program, makes_environment
from tengen.games.protocol import OwnGame
from tengen.games.typed import allow, is_program
from tengen.observe.progress_line import ProgressLine

_MAX_GAMES = 1_000_000
_MAX_SEED = 2**63 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen game check`` to ``parser``."""
    parser.add_argument(
        "task",
        metavar="TASK",
        help="module:Game for your own game (the module is imported), or "
        "openspiel/NAME",
    )
    parser.add_argument(
        "--games", type=int, default=100, metavar="N", help="random games to play (100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the moves (0)")


def game_check(args: argparse.Namespace) -> dict[str, Any]:
    """Checks every method of a game; see `tengen.games.check_own_game`.

    Returns:
        ``task``, ``num_games``, ``seed``, ``plies`` (lengths of the shortest and the
        longest game), ``results`` (games that the first player won, drew and lost) and
        ``warning`` (empty if there is none).

    Raises:
        UsageError: The game breaks the protocol, or is not written in Python.
    """
    check_range("games", args.games, 1, _MAX_GAMES)
    check_range("seed", args.seed, 0, _MAX_SEED)
    with ProgressLine(f"playing {args.games:,} random games"):
        own = _open(args.task)
        facts = check_own_game(own, _name(args.task), args.games, args.seed)
    fewest, most = min(facts.num_plies), max(facts.num_plies)
    won, drawn, lost = (facts.results[result] for result in (1, 0, -1))
    if not args.json:
        if facts.warning:
            print(f"warning  {facts.warning}")
        print(
            f"seen     games of {fewest:,} to {most:,} plies; {won:,} won by the first "
            f"player, {drawn:,} drawn, {lost:,} lost"
        )
        print(f"{args.task} follows the protocol in {args.games:,} random games")
    return {
        "task": args.task,
        "num_games": args.games,
        "seed": args.seed,
        "plies": [fewest, most],
        "results": [won, drawn, lost],
        "warning": facts.warning,
    }


def _open(task: str) -> OwnGame[Any]:
    """Imports and returns the user's game that ``task`` names.

    Raises:
        UsageError: The task is not a game written in Python.
    """
    if task.startswith(OPENSPIEL_PREFIX):
        return OpenSpielGame(task)
    check(
        is_program(task),
        "task",
        task,
        "must be module:Game, a game in Python, or openspiel/NAME; built-in games need "
        "no check",
    )
    allow(task)
    check(
        not makes_environment(task),
        "task",
        task,
        "must be a game, not an environment; use tengen env check",
    )
    own: OwnGame[Any] = make_program(task)
    return own


def _name(task: str) -> str:
    return task if task.startswith(OPENSPIEL_PREFIX) else task.partition(":")[2]
