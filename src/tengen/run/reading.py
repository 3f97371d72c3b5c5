"""Finds, reads and hashes files: JSON with a ``schema``, and foreign formats.

The export, the gate and every role that runs a model verify the model's hash. So that a
process hashes an unchanged file only once, hashes are cached by the file's identity,
which a rename does not change.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
import stat
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tengen.errors import RunError, TengenError, UsageError, os_reason

# Identity of a file: device, inode, size, and modification time in nanoseconds.
_Identity = tuple[int, int, int, int]
_NUM_KEPT = 64
_known: OrderedDict[_Identity, str] = OrderedDict()
_lock = threading.Lock()


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Returns the paths below a folder that match a pattern, in arbitrary order.

    Unlike ``Path.glob``, it ignores folders that other processes remove meanwhile.

    Args:
        folder: The folder to search, which need not exist.
        pattern: A pattern as for ``Path.glob``; ``*`` does not match temporary entries.
    """
    return [folder / name for name in glob.glob(pattern, root_dir=folder)]


def open_regular(path: Path) -> int:
    """Opens a regular file for reading, and returns its descriptor. Does not block.

    Raises:
        OSError: The file cannot be opened.
        ValueError: It is not a regular file, or the path contains a null byte.
    """
    # Without O_NONBLOCK, opening a FIFO would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("it is not a regular file")
    return descriptor


def read_bounded(path: Path, most_bytes: int | None) -> bytes:
    """Returns the content of a regular file.

    Args:
        path: The file.
        most_bytes: Maximum size of the file in bytes; None for any size.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a regular file, or has more than ``most_bytes`` bytes.
    """
    with open(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if most_bytes is not None and size > most_bytes:
            raise ValueError(f"it has {size} bytes, more than {most_bytes}")
        return file.read(-1 if most_bytes is None else size)


def read_object(
    path: Path,
    name: str,
    *,
    schema: int,
    advice: str,
    error: type[TengenError] = RunError,
    most_bytes: int | None = None,
) -> dict[str, Any]:
    """Returns the JSON object in a file, after checking its ``schema``.

    Args:
        path: The file.
        name: The file's name in messages.
        schema: The newest schema version that the caller supports.
        advice: Advice for the user if the file is unreadable or damaged.
        error: The exception class for an unreadable or damaged file.
        most_bytes: Maximum size of the file in bytes; None for any size.

    Raises:
        UsageError: The file's schema is newer than ``schema``.
        RunError: The file is unreadable or damaged; raised as ``error`` if given.
    """
    try:
        content: Any = json.loads(read_bounded(path, most_bytes))
    except OSError as failure:
        raise error(
            f"{name} ({path}) cannot be read, {os_reason(failure)}; {advice}"
        ) from failure
    except (ValueError, RecursionError) as failure:
        rule = f"is damaged or not JSON, {failure}"
        raise error(f"{name} ({path}) {rule}; {advice}") from None
    found = content.get("schema") if isinstance(content, dict) else None
    if type(found) is not int:
        raise error(f"{name} ({path}) is damaged, it has no schema number; {advice}")
    if found < 1:
        raise error(f"{name} ({path}) is damaged, its schema is {found}; {advice}")
    if found > schema:
        raise newer_schema(path, found, schema)
    return dict(content)


def newer_schema(path: Path, found: int, newest: int) -> UsageError:
    """Returns the error for a file that a later version of tengen wrote.

    Args:
        path: The file.
        found: The file's schema version.
        newest: The newest schema version that this code reads.
    """
    return UsageError(
        f"schema ({found}) of {path} is newer than {newest}, the newest supported; "
        "use the tengen that made it, or a later one"
    )


class OtherKindError(ValueError):
    """Raised for another program's file that is intact but not supported."""


@contextmanager
def reading_file(
    what: str, path: Path, error: type[TengenError] = RunError
) -> Iterator[None]:
    """Converts exceptions from reading another program's file to one-line errors.

    Args:
        what: The file's name in messages.
        path: The file.
        error: The exception class to raise.

    Raises:
        RunError: The file is unreadable or damaged; raised as ``error`` if given.
    """
    try:
        yield
    except OtherKindError as failure:
        raise error(f"{what} ({path}) is not supported, {failure}") from failure
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as failure:
        raise error(
            f"{what} ({path}) is damaged or not supported, {failure}; download it again"
        ) from failure
    except OSError as failure:
        raise error(
            f"{what} ({path}) cannot be read, {os_reason(failure)}; check the path"
        ) from failure


def file_sha256(path: Path) -> str:
    """Returns the lower-case hexadecimal SHA-256 of a file. Thread-safe.

    Does not read a file that this process has hashed before, unless it has changed.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        identity = _identity(os.fstat(file.fileno()))
        with _lock:
            known = _known.get(identity)
        if known is not None:
            return known
        found = hashlib.file_digest(file, "sha256").hexdigest()
    _keep(identity, found)
    return found


def remember_sha256(path: Path, sha256: str) -> None:
    """Records the hash of a file that this process has just written.

    Args:
        path: The file, which must be closed.
        sha256: SHA-256 of the written bytes, in lower-case hexadecimal.

    Raises:
        OSError: The file does not exist.
    """
    _keep(_identity(os.stat(path)), sha256)


def _identity(stat: os.stat_result) -> _Identity:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _keep(identity: _Identity, sha256: str) -> None:
    with _lock:
        _known[identity] = sha256
        while len(_known) > _NUM_KEPT:
            _known.popitem(last=False)
