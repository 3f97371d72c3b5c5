"""``tengen gtp``: a model of Go for programs that speak GTP."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from tengen.config import check, check_range
from tengen.games import add_task_argument
from tengen.play.gtp.engine import Engine
from tengen.play.gtp.lines import LineReader
from tengen.play.gtp.play_commands import COMMANDS
from tengen.play.gtp.resigning import Resigning
from tengen.play.loading import load_player
from tengen.search import MAX_SIMULATIONS

__all__ = ["add_arguments", "gtp"]

_CHUNK_BYTES = 1 << 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``gtp``."""
    parser.add_argument(
        "model", metavar="MODEL", help="RUN, RUN@17, a model directory or katago:FILE"
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=None,
        metavar="N",
        help="most simulations a move (400; with a clock what time allows)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=None,
        metavar="N",
        help="that think together (all cores; 1 with --fresh, and where Python makes "
        "the moves)",
    )
    parser.add_argument(
        "--name",
        default="tengen",
        metavar="TEXT",
        help="what it answers to name; Lizzie shows owners and scores of programs "
        "alone whose name begins with KataGo (tengen)",
    )
    parser.add_argument(
        "--resign-below",
        type=float,
        default=None,
        metavar="VALUE",
        help="resign where its value, of -1 to 1, was below this at three of its moves "
        "in a row: -0.95 (never)",
    )
    parser.add_argument(
        "--devices", metavar="D", help="that the model computes on: cpu or cuda:0 (cpu)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="FIELD=v",
        help="change how it plays: search.lcb_stdevs=5 precision=fp32; fields as "
        "of agent.play in tengen recipes TASK",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="begin each search anew, so that a position has the same answer twice; "
        "else the tree is kept between moves",
    )
    parser.add_argument(
        "--ponder",
        action="store_true",
        help="search on while the other side thinks, on the same cores",
    )
    add_task_argument(parser)


def gtp(args: argparse.Namespace) -> dict[str, Any]:
    """Answers a controller on stdin and stdout until it leaves; returns nothing.

    Raises:
        UsageError: The model cannot be used or plays no Go, or a number or a setting
            is refused.
        RunError: The backend refuses the model.
    """
    if args.simulations is not None:
        check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    rule = "keeps its tree, which --fresh forbids; leave one of them out"
    check(not (args.ponder and args.fresh), "ponder", args.ponder, rule)
    below = args.resign_below
    check(
        below is None or -1 < below < 1,
        "resign-below",
        below,
        "must be above -1 and below 1; leave it out never to resign",
    )
    with load_player(
        args.model,
        args.settings,
        args.devices,
        args.task,
        is_fresh=args.fresh,
    ) as player:
        engine = Engine(
            player,
            simulations=args.simulations,
            threads=player.usual_threads(args.threads, is_repeatable=args.fresh),
            write=_write,
            lines=LineReader(_read),
            name=args.name,
            resigning=Resigning(below),
            ponders=args.ponder,
        )
        engine.add(COMMANDS)
        engine.run()
    return {}


def _read() -> bytes:
    # Not by sys.stdin, whose lock a thread that waits would keep when the process ends.
    return os.read(sys.stdin.fileno(), _CHUNK_BYTES)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
