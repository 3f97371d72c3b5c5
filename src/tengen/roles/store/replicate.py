"""``tengen store replicate``: copies a store of another host to a folder here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tengen.store import Replica

__all__ = ["add_arguments", "store_replicate"]

_LOOK_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen store replicate``."""
    parser.add_argument("address", help="tcp://HOST:PORT of a store with durability")
    parser.add_argument(
        "folder", type=Path, help="folder for the copy, on a disk; made when absent"
    )
    parser.add_argument(
        "--name", help="name of this copy in the store's report (this host's name)"
    )
    parser.add_argument(
        "--ca-file",
        type=Path,
        help="PEM file of the authority that signed the store's certificate",
    )
    parser.add_argument(
        "--fingerprint",
        help="SHA-256 of the store's certificate in hex, instead of --ca-file",
    )


def store_replicate(args: argparse.Namespace) -> dict[str, Any]:
    """Keeps the folder a copy of the store until Ctrl-C.

    Raises:
        UsageError: The store or the folder is refused.
    """
    with Replica(
        args.address,
        args.folder,
        name=args.name,
        ca_file=args.ca_file,
        fingerprint=args.fingerprint,
        tell=lambda line: print(f"tengen: {line}", flush=True),
    ) as replica:
        while not replica.wait(_LOOK_S):
            pass
        return replica.describe()
