"""``tengen actor RUN``: steps environments by itself, on the learner's host."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check_range
from tengen.roles import command
from tengen.roles.config import read_config
from tengen.run import RunDirectory

__all__ = ["actor", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen actor``."""
    command.add_arguments(parser)
    parser.add_argument(
        "--index",
        type=int,
        default=0,
        help="which of the run's actors it is, from 0 (0); see tengen train --actors",
    )


def actor(args: argparse.Namespace) -> dict[str, Any]:
    """Steps environments.

    Raises:
        UsageError: ``--index`` is not below the run's number of actors.
        RunError: As ``command.serve``.
    """
    count = read_config(RunDirectory.open(args.run)).launch.of("actor").count
    check_range("index", args.index, 0, count - 1, "raise launch.roles.actor.count")
    return command.serve("actor", args, index=args.index)
