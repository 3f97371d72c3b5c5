"""``tengen learn RUN``: learns by itself, or follows the learner that leads."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check_range
from tengen.roles import command
from tengen.roles.config import read_config
from tengen.run import RunDirectory, usable_threads

__all__ = ["add_arguments", "learn"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen learn``."""
    command.add_arguments(parser)
    parser.add_argument(
        "--index",
        type=int,
        default=0,
        help="which of the run's learners it is, from 0, the one that leads (0)",
    )


def learn(args: argparse.Namespace) -> dict[str, Any]:
    """Learns from what arrives.

    Raises:
        UsageError: ``--index`` is not below the run's number of learners.
        RunError: As ``command.serve``.
    """
    usable_threads(args.threads)  # as every role, before it looks at the run
    count = read_config(RunDirectory.open(args.run)).launch.of("learn").count
    check_range("index", args.index, 0, count - 1, "raise launch.roles.learn.count")
    return command.serve("follow" if args.index else "learn", args, index=args.index)
