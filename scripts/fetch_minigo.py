#!/usr/bin/env python3
"""Downloads the initial checkpoint and the target model of MLPerf's minigo.

::

    python scripts/fetch_minigo.py FOLDER [--from URL]

The checkpoint includes the self-play games of its last generations
(docs/howto/train/mlperf_data.md). After an interruption, the same command resumes the
download; complete files are skipped. Exit codes: 0 all files exist, 1 some are missing,
2 bad usage.
"""

from __future__ import annotations

import argparse
import errno
import http.client
import os
import re
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NoReturn

SOURCE = "https://storage.googleapis.com/minigo-pub/ml_perf/0.7"
NAMES = (
    "checkpoint.tar.gz",
    "target.index",
    "target.meta",
    "target.data-00000-of-00001",
)

_TIMEOUT_S = 60
_CHUNK_BYTES = 1 << 20
# HTTP status for a range beyond the end of the file.
_BEYOND = 416
# Errors of the disk, which the network cannot cause.
_OF_DISK = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS),
    *(errno.EACCES, errno.EISDIR, errno.EIO),
}
# All exceptions that urllib raises for an unreachable or failing server.
_FAILURES = (OSError, http.client.HTTPException)

NEXT = """\
all files are there; unpack the checkpoint and import what you need:
  tar -xzf {folder}/checkpoint.tar.gz -C {folder}
  find {folder} -name '*.index' -o -type d -name '[0-9][0-9][0-9][0-9][0-9][0-9]'
  tengen data import-minigo --checkpoint {folder}/target --out {folder}/target-model
  tengen data import-minigo --checkpoint CHECKPOINT --out {folder}/first-model
  tengen data import-minigo --examples SELFPLAY --out {folder}/rows
CHECKPOINT is the path of the other .index without its end, SELFPLAY the folder of the
folders of six digits."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(
            f"fetch_minigo: arguments ({message}) are not understood; give one folder",
            file=sys.stderr,
        )
        sys.exit(2)


def fetch(url: str, path: Path) -> str:
    """Downloads a file unless it exists. Blocks; times out after 60 s without data.

    Args:
        url: The source.
        path: The destination; an incomplete download has ``.part`` added to its name.

    Returns:
        A one-line error message, or "".
    """
    if path.exists():
        return ""
    part = path.with_name(f"{path.name}.part")
    try:
        size = _fetch_rest(url, part)
    except _FAILURES as error:
        if isinstance(error, urllib.error.HTTPError) and error.code == _BEYOND:
            part.unlink(missing_ok=True)
            return (
                f"file ({path}) is missing, {part} was longer than {url}; run this "
                f"again, it begins anew"
            )
        # A network error is a URLError or has an errno that is not in _OF_DISK.
        is_of_url = isinstance(error, urllib.error.URLError)
        if not is_of_url and getattr(error, "errno", None) in _OF_DISK:
            return (
                f"file ({path}) is missing, {part} cannot be written, "
                f"{_reason(error)}; mend that and run this again, it goes on from there"
            )
        return (
            f"file ({path}) is missing, {_reason(error)} at {url}; run this again "
            f"where there is a network, or put the file there yourself"
        )
    found = part.stat().st_size
    if found != size:
        return (
            f"file ({path}) is missing, {found} of {size} bytes came from {url}; run "
            f"this again, it goes on from there"
        )
    part.rename(path)
    return ""


def _fetch_rest(url: str, part: Path) -> int:
    """Downloads the rest of a file; returns the complete size."""
    begun = part.stat().st_size if part.exists() else 0
    # Request the last byte again, because an empty range would be an error.
    first = max(begun - 1, 0)
    request = urllib.request.Request(url, headers={"Range": f"bytes={first}-"})
    with (
        urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer,
        open(part, "r+b" if begun else "wb") as file,
    ):
        told = re.fullmatch(
            r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", "")
        )
        if answer.status == 206 and told and int(told[1]) == first:
            size = int(told[2])
            file.seek(first)
        else:
            # A server without support for ranges sends the complete file.
            size = int(answer.headers.get("Content-Length", "-1"))
            if size < 0:
                raise http.client.HTTPException("no size is told")
            file.truncate(0)
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return size


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code}"
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, OSError) and inner.strerror:
        # Omit path and errno: the caller's message has the path.
        inner = inner.strerror
    return " ".join(str(inner).split()) or type(inner).__name__


def _is_url(text: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(text)
        # urlsplit checks the port only when ``port`` is read.
        is_named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_named and parts.scheme in ("http", "https")


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit code."""
    parser = _Parser(prog="fetch_minigo", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--from", dest="source", default=SOURCE, metavar="URL")
    args = parser.parse_args(argv)
    if not _is_url(args.source):
        print(
            f"fetch_minigo: --from ({args.source}) must be a URL, http or https; see "
            f"{SOURCE}",
            file=sys.stderr,
        )
        return 2
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
        if not all((args.folder / name).exists() for name in NAMES):
            tempfile.TemporaryFile(dir=args.folder).close()
    except OSError as error:
        print(
            f"fetch_minigo: folder ({args.folder}) cannot be written, "
            f"{_reason(error)}; choose another",
            file=sys.stderr,
        )
        return 2
    problems = []
    for name in NAMES:
        problem = fetch(f"{args.source.rstrip('/')}/{name}", args.folder / name)
        if problem:
            problems.append(problem)
            print(f"fetch_minigo: {problem}", file=sys.stderr)
        else:
            print(f"{args.folder / name}: there")
    if not problems:
        print(NEXT.format(folder=args.folder))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
