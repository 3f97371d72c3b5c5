#!/usr/bin/env python3
"""Downloads published KataGo networks that tengen can play.

The networks are described in docs/howto/train/katago_networks.md.

::

    python scripts/fetch_katago.py FOLDER [NAME ...]

NAME is a network of this script's table, by default b6c96; ``--list`` prints all names.
A file is stored only if its sha256 matches the table; an existing file is verified and
not downloaded again. Exit codes: 0 all files exist, 1 some are missing, 2 bad usage.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import shutil
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

_TIMEOUT_S = 60
_CHUNK_BYTES = 1 << 20
_RELEASES = "https://github.com/lightvector/KataGo/releases/download/v1.4.5"
_TESTS = "https://raw.githubusercontent.com/lightvector/KataGo/master/cpp/tests/models"


@dataclass(frozen=True)
class Network:
    """One published file."""

    url: str
    """Where to download the file."""
    sha256: str
    """Digest of the file, in lower-case hexadecimal."""

    @property
    def file(self) -> str:
        """The file's name."""
        return self.url.rpartition("/")[2]


NETWORKS = {
    "b6c96": Network(
        f"{_TESTS}/g170-b6c96-s175395328-d26788732.bin.gz",
        "f5d32604e3675c480c7c8f6aa579a1ea857135628a0afccc8fa56330fbacd38d",
    ),
    "b20c256": Network(
        f"{_RELEASES}/g170e-b20c256x2-s5303129600-d1228401921.bin.gz",
        "7c8a84ed9ee737e9c7e741a08bf242d63db37b648e7f64942f3a8b1b5101e7c2",
    ),
    "b30c320": Network(
        f"{_RELEASES}/g170-b30c320x2-s4824661760-d1229536699.bin.gz",
        "1e601446c870228932d44c8ad25fd527cb7dbf0cf13c3536f5c37cff1993fee6",
    ),
    "b40c256": Network(
        f"{_RELEASES}/g170-b40c256x2-s5095420928-d1229425124.bin.gz",
        "2b3a78981d2b6b5fae1cf8972e01bf3e48d2b291bc5e52ef41c9b65c53d59a71",
    ),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(
            f"fetch_katago: arguments ({message}) are not understood; give a folder "
            f"and names out of {', '.join(NETWORKS)}",
            file=sys.stderr,
        )
        sys.exit(2)


def fetch(network: Network, path: Path) -> str:
    """Downloads a file unless it exists; times out after 60 s without data. Blocks.

    Args:
        network: The network to download.
        path: The destination.

    Returns:
        A one-line error message, or "".
    """
    part = path.with_name(f"{path.name}.part")
    try:
        if not path.exists():
            with (
                urllib.request.urlopen(network.url, timeout=_TIMEOUT_S) as answer,
                open(part, "wb") as file,
            ):
                shutil.copyfileobj(answer, file, _CHUNK_BYTES)
            _check(network, part)
            os.replace(part, path)
        _check(network, path)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        return (
            f"file ({path}) is missing, {reason} at {network.url}; run this again "
            f"where there is a network, or put the file there yourself"
        )
    return ""


def _check(network: Network, path: Path) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != network.sha256:
        path.unlink()
        raise ValueError(f"what came has the sha256 {found} and not {network.sha256}")


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code."""
    parser = _Parser(prog="fetch_katago", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say what there is")
    args = parser.parse_args(argv)
    if args.list:
        for name, network in NETWORKS.items():
            print(f"{name:8} {network.url}")
        return 0
    unknown = [name for name in args.names if name not in NETWORKS]
    if args.folder is None or unknown:
        parser.error(unknown[0] if unknown else "no folder")
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in args.names or ["b6c96"]:
        path = args.folder / NETWORKS[name].file
        problem = fetch(NETWORKS[name], path)
        failed += bool(problem)
        if problem:
            print(f"fetch_katago: {problem}", file=sys.stderr)
        else:
            print(f"{path}: there; tengen play katago:{path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
