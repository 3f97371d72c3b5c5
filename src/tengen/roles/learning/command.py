"""``tengen learn RUN``: one learner by itself, which leads or follows the leader."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.roles.alone import command

__all__ = ["add_arguments", "learn"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen learn``."""
    command.add_arguments(parser)
    command.add_index(
        parser, "which of the run's learners this is; 0 leads, the others follow"
    )


def learn(args: argparse.Namespace) -> dict[str, Any]:
    """Learns from the experience that arrives.

    Raises:
        UsageError: ``--index`` is not below the run's number of learners.
        RunError: As ``command.serve``.
    """
    command.check_index(args, "learn")
    return command.serve("follow" if args.index else "learn", args, index=args.index)
