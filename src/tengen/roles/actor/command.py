"""``tengen actor RUN``: steps environments by itself, on any host."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.config import check_range
from tengen.roles import command
from tengen.roles.config import read_config
from tengen.roles.doors import TOKEN_VARIABLE, Connect
from tengen.run import RunDirectory
from tengen.transport import NetAddress

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
    parser.add_argument(
        "--connect",
        metavar="HOST:PORT",
        help="launch.listen of the learner's run, where RUN is a folder of this host "
        f"with a copy of its run.json; the token is {TOKEN_VARIABLE}'s",
    )
    parser.add_argument(
        "--fingerprint", help="SHA-256 of their certificate, with --connect"
    )


def actor(args: argparse.Namespace) -> dict[str, Any]:
    """Steps environments.

    Raises:
        UsageError: ``--index`` is not below the run's number of actors, or
            ``--connect`` is no address.
        RunError: As ``command.serve``.
    """
    connect = None
    if args.connect is not None:
        NetAddress.parse(args.connect)
        connect = Connect(address=args.connect, fingerprint=args.fingerprint)
        # A folder with run.json alone is a run.
        RunDirectory.create_or_resume(RunDirectory.open(args.run).path)
    count = read_config(RunDirectory.open(args.run)).launch.of("actor").count
    check_range("index", args.index, 0, count - 1, "raise launch.roles.actor.count")
    return command.serve("actor", args, index=args.index, connect=connect)
