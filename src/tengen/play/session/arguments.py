"""Command-line arguments of commands that play, and a session's input and output."""

from __future__ import annotations

import argparse
import os
import sys

from tengen.config import check, check_range
from tengen.games import add_task_argument
from tengen.play.loading import load_player
from tengen.play.player import Player
from tengen.search import MAX_SIMULATIONS

_CHUNK_BYTES = 1 << 16


def add_session_arguments(parser: argparse.ArgumentParser, models: str) -> None:
    """Adds the arguments that specify the player and its search.

    Args:
        parser: The parser of the command.
        models: Further kinds of MODEL, for the help text.
    """
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=f"RUN, RUN@17, a model directory{models}",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=None,
        metavar="N",
        help="maximum simulations per move (400; with a clock, as many as time allows)",
    )
    add_level_argument(parser)
    add_search_arguments(parser)
    parser.add_argument(
        "--ponder",
        action="store_true",
        help="search while the opponent thinks too, on the same cores",
    )
    add_task_argument(parser)


def add_level_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--level``, the playing level of a bundled player."""
    parser.add_argument(
        "--level",
        metavar="L",
        help="level of a bundled player: a number from 1 (weakest), a name such as "
        "beginner, or rating:1200; tengen players NAME lists the levels",
    )


def checked_simulations(args: argparse.Namespace) -> int | None:
    """Returns the value of ``--simulations``; None if it was not given.

    Args:
        args: The parsed arguments, with ``simulations`` and ``level``.

    Raises:
        UsageError: The number is out of range, or ``--level`` is given as well.
    """
    simulations: int | None = args.simulations
    if simulations is not None:
        check_range("simulations", simulations, 1, MAX_SIMULATIONS)
        rule = "sets the simulations itself; leave --simulations out"
        check(args.level is None, "level", args.level, rule)
    return simulations


def add_search_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the search options that all commands that play share."""
    parser.add_argument(
        "--threads",
        type=int,
        default=None,
        metavar="N",
        help="threads that search one tree together (all cores; 1 with --fresh, and "
        "for games in Python)",
    )
    parser.add_argument(
        "--devices",
        metavar="D",
        help="device of the model: cpu or cuda:0 (cpu)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="FIELD=v",
        help="change how the model plays, such as search.lcb_stdevs=5 or "
        "precision=fp32; the fields are those of agent.play in tengen recipes TASK",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="start each search with an empty tree, which makes answers repeatable; "
        "otherwise the tree is reused between moves",
    )


def load_for_session(args: argparse.Namespace) -> tuple[Player, int | None, int]:
    """Returns the player, the maximum simulations per move, and the threads per tree.

    The maximum is None if neither ``--simulations`` nor ``--level`` sets it. Blocks
    while the model is compiled.

    Args:
        args: The parsed arguments that ``add_session_arguments`` defines.

    Raises:
        UsageError: The model cannot be used, or a number or a setting is invalid.
        RunError: The backend rejects the model.
    """
    simulations = checked_simulations(args)
    rule = "needs tree reuse, which --fresh disables; leave one of them out"
    check(not (args.ponder and args.fresh), "ponder", args.ponder, rule)
    player = load_player(
        args.model,
        args.settings,
        args.devices,
        args.task,
        is_fresh=args.fresh,
        level=args.level,
    )
    if player.level is not None:
        simulations = player.level.simulations
        # Reject --ponder, because it would make the player stronger than its level.
        check(not args.ponder, "ponder", args.ponder, "excludes --level; leave one out")
    threads = player.usual_threads(args.threads, is_repeatable=args.fresh)
    return player, simulations, threads


def read_input() -> bytes:
    """Returns the next bytes from stdin; empty at the end of input. Blocks.

    Reads the file descriptor: a thread blocked in ``sys.stdin`` would hold the stream's
    lock, and the interpreter's shutdown would abort.
    """
    return os.read(sys.stdin.fileno(), _CHUNK_BYTES)


def write_output(text: str) -> None:
    """Writes ``text`` to stdout and flushes it."""
    sys.stdout.write(text)
    sys.stdout.flush()
