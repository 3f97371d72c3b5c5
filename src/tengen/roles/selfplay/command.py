"""``tengen selfplay RUN``: self-play by itself, on any machine."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check_range
from tengen.roles.alone import command
from tengen.roles.doors import connecting

__all__ = ["add_arguments", "selfplay"]

_MAX_GAMES = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen selfplay``."""
    command.add_arguments(parser)
    connecting.add_arguments(parser)
    parser.add_argument(
        "--games",
        type=int,
        help="end once this call has played so many games, with the last "
        "generation complete",
    )


def selfplay(args: argparse.Namespace) -> dict[str, Any]:
    """Plays generations.

    Raises:
        UsageError: ``--games`` is out of its range, or ``--connect`` is not an address.
        RunError: As ``command.serve``.
    """
    if args.games is not None:
        check_range("games", args.games, 1, _MAX_GAMES, "leave it out")
    connect = connecting.connect_of(args)
    return command.serve("selfplay", args, args.games, connect=connect)
