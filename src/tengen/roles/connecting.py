"""The option ``--connect`` for roles whose run is on another host, and their mirror."""

from __future__ import annotations

import argparse
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tengen.errors import UsageError
from tengen.remote import RUN, Mirror
from tengen.roles.doors import RUN_SERVICE, TOKEN_VARIABLE, Connect, way_to
from tengen.run import RunDirectory
from tengen.transport import Client, NetAddress

__all__ = ["add_arguments", "connect_of", "mirrored"]

_PATIENCE_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares ``--connect`` and ``--fingerprint``."""
    parser.add_argument(
        "--connect",
        metavar="HOST:PORT",
        help="join a run on another host, at the address in its launch.listen; RUN is "
        f"then a local folder for the role's files, and the variable {TOKEN_VARIABLE} "
        "must contain the token",
    )
    parser.add_argument(
        "--fingerprint", help="with --connect, the SHA-256 of the run's certificate"
    )


def connect_of(args: argparse.Namespace) -> Connect | None:
    """Returns the address given with ``--connect``, or None.

    Raises:
        UsageError: The address is not HOST:PORT, or its host cannot be resolved.
    """
    if args.connect is None:
        if args.fingerprint is not None:
            raise UsageError(
                f"fingerprint ({args.fingerprint}) must come with --connect; give both"
            )
        return None
    address = NetAddress.parse(args.connect)
    try:
        socket.getaddrinfo(address.host, address.port)
    except OSError as error:
        raise UsageError(
            f"connect ({args.connect}) must name a known host: "
            f"{error.strerror or error}; correct it"
        ) from None
    return Connect(address=args.connect, fingerprint=args.fingerprint)


@contextlib.contextmanager
def mirrored(
    path: Path,
    connect: Connect | None,
    role: str,
    index: int | None,
    stop: threading.Event,
    say: Callable[[str], None],
    *,
    is_vouched: bool = False,
) -> Iterator[Mirror | None]:
    """Opens a mirror at ``path`` for the context; yields None if ``connect`` is None.

    Args:
        path: The mirror's folder.
        connect: The run's address; None: the run is at ``path`` itself.
        role: The role that works on the mirror.
        index: Index of the actor or number of the writer; None: any free writer.
        stop: Ends the wait for the run's host.
        say: Called with a line of text for the user.
        is_vouched: Whether a runner started this process as the only one of its index.

    Raises:
        UsageError: The environment has no token; for others see ``Mirror.open``.
        RunError: The host does not answer, or writing failed.
    """
    if connect is None:
        yield None
        return
    way = way_to(RunDirectory(path), RUN_SERVICE, connect)
    client = Client(
        RUN,
        way.address,
        patience_s=_PATIENCE_S,
        token=way.token,
        fingerprint=way.fingerprint,
    )
    mirror = Mirror(
        path, client, role, index, stop=stop, say=say, is_vouched=is_vouched
    )
    mirror.open()
    try:
        yield mirror
    finally:
        mirror.close()
