"""``tengen inference RUN``: evaluates the network for a run's actors, on any host."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.roles.alone import command

__all__ = ["add_arguments", "inference"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen inference``."""
    command.add_arguments(parser)
    command.add_index(parser, "which of the run's inference servers this is, from 0")


def inference(args: argparse.Namespace) -> dict[str, Any]:
    """Answers the actors of this run.

    Raises:
        UsageError: ``--index`` is not below the run's number of servers.
        RunError: As ``command.serve``.
    """
    command.check_index(args, "inference")
    return command.serve("inference", args, index=args.index)
