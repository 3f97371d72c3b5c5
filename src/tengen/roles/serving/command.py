"""``tengen inference RUN``: answers a run's actors by itself, on any host."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check_range
from tengen.roles import command
from tengen.roles.config import read_config
from tengen.run import RunDirectory, usable_threads

__all__ = ["add_arguments", "inference"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen inference``."""
    command.add_arguments(parser)
    parser.add_argument(
        "--index",
        type=int,
        default=0,
        help="which of the run's inference servers it is, from 0 (0)",
    )


def inference(args: argparse.Namespace) -> dict[str, Any]:
    """Answers the actors of this run.

    Raises:
        UsageError: ``--index`` is not below the run's number of servers.
        RunError: As ``command.serve``.
    """
    usable_threads(args.threads)  # as every role, before it looks at the run
    count = read_config(RunDirectory.open(args.run)).launch.of("inference").count
    check_range("index", args.index, 0, count - 1, "raise launch.roles.inference.count")
    return command.serve("inference", args, index=args.index)
