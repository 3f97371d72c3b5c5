"""``tengen gtp``: a model of Go for programs that speak GTP."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check
from tengen.play.gtp.engine import Engine
from tengen.play.gtp.play_commands import COMMANDS
from tengen.play.gtp.resigning import Resigning
from tengen.play.session.arguments import (
    add_session_arguments,
    load_for_session,
    read_input,
    write_output,
)
from tengen.play.session.lines import LineReader

__all__ = ["add_arguments", "gtp"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``gtp``."""
    add_session_arguments(parser, ", katago:FILE or a bundled player, go/9 or go/7")
    parser.add_argument(
        "--name",
        default="tengen",
        metavar="TEXT",
        help="the program's name for the controller; Lizzie shows owners and scores "
        "only if it begins with KataGo (tengen)",
    )
    parser.add_argument(
        "--resign-below",
        type=float,
        default=None,
        metavar="VALUE",
        help="resign once the value, in [-1, 1], was below this at three of its own "
        "moves in a row, for example -0.95 (never)",
    )


def gtp(args: argparse.Namespace) -> dict[str, Any]:
    """Answers a controller on stdin and stdout until it leaves; returns nothing.

    Raises:
        UsageError: The model cannot be used or plays no Go, or a number or a setting
            is refused.
        RunError: The backend refuses the model.
    """
    below = args.resign_below
    check(
        below is None or -1 < below < 1,
        "resign-below",
        below,
        "must be above -1 and below 1; leave it out never to resign",
    )
    player, simulations, threads = load_for_session(args)
    with player:
        engine = Engine(
            player,
            simulations=simulations,
            threads=threads,
            write=write_output,
            lines=LineReader(read_input),
            name=args.name,
            resigning=Resigning(below),
            ponders=args.ponder,
        )
        engine.add(COMMANDS)
        engine.run()
    return {}
