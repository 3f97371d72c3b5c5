"""``tengen learn RUN``: learns by itself, or follows the learner that leads."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.roles.alone import command

__all__ = ["add_arguments", "learn"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen learn``."""
    command.add_arguments(parser)
    command.add_index(
        parser, "which of the run's learners it is, from 0, the one that leads"
    )


def learn(args: argparse.Namespace) -> dict[str, Any]:
    """Learns from what arrives.

    Raises:
        UsageError: ``--index`` is not below the run's number of learners.
        RunError: As ``command.serve``.
    """
    command.check_index(args, "learn")
    return command.serve("follow" if args.index else "learn", args, index=args.index)
