"""``tengen play``: a game on the terminal, or by lines from a pipe."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any

from tengen.games import add_task_argument
from tengen.observe.progress_line import ProgressLine
from tengen.play.loading import load_player
from tengen.play.session.arguments import (
    add_level_argument,
    add_search_arguments,
    checked_simulations,
)
from tengen.play.terminal import Session

__all__ = ["add_arguments", "play"]

_SIMULATIONS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``play``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="RUN, RUN@17, a model directory, katago:FILE or a bundled player: "
        "connect4, go/9, ... of tengen players",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help=f"simulations a move, how long the agent thinks ({_SIMULATIONS})",
    )
    add_level_argument(parser)
    add_search_arguments(parser)
    add_task_argument(parser)
    side = parser.add_mutually_exclusive_group()
    side.add_argument(
        "--first", action="store_true", help="you make the first move (default)"
    )
    side.add_argument(
        "--second", action="store_true", help="the agent makes the first move"
    )


def play(args: argparse.Namespace) -> dict[str, Any]:
    """Plays until the person leaves or the input ends; returns ``Session.report``.

    Raises:
        UsageError: The model cannot be used, or a number or a setting is refused.
        RunError: The backend refuses the model.
    """
    simulations = checked_simulations(args)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with ProgressLine("opening the model"):
        opened = load_player(
            args.model,
            args.settings,
            args.devices,
            args.task,
            is_fresh=args.fresh,
            level=args.level,
        )
    with opened as player:
        if player.level is not None:
            simulations = player.level.simulations
        session = Session(
            player,
            lambda text: print(text, flush=True),
            simulations=simulations or _SIMULATIONS,
            threads=player.usual_threads(args.threads, is_repeatable=args.fresh),
            person_is_first=not args.second,
            colours=is_terminal and "NO_COLOR" not in os.environ,
        )
        if is_terminal:
            with contextlib.suppress(ImportError):
                # If readline exists, it gives input() line editing and a history.
                import readline  # noqa: F401
        run(session, with_prompt=is_terminal)
    return session.report()


def run(session: Session, *, with_prompt: bool) -> None:
    """Feeds a session from stdin until it is over or the input ends.

    Args:
        session: Not started yet.
        with_prompt: Whether a person is typing; the end of input then ends the line.
    """
    session.start()
    while not session.is_over:
        try:
            line = input(session.prompt if with_prompt else "")
        except EOFError:
            if with_prompt:
                print()
            return
        session.feed(line)
