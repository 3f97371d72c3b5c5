"""``tengen actor RUN``: steps environments by itself, on any host."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.roles.alone import command
from tengen.roles.doors import connecting

__all__ = ["actor", "add_arguments"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen actor``."""
    command.add_arguments(parser)
    command.add_index(
        parser, "which of the run's actors this is, from 0; see tengen train --actors"
    )
    connecting.add_arguments(parser)


def actor(args: argparse.Namespace) -> dict[str, Any]:
    """Steps environments.

    Raises:
        UsageError: ``--index`` is not below the run's number of actors, or
            ``--connect`` is not an address.
        RunError: As ``command.serve``.
    """
    connect = connecting.connect_of(args)
    return command.serve("actor", args, index=args.index, connect=connect)
