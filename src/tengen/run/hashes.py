"""Hashes of files, each computed once in a process.

A model is verified by export, by the gate and by every role that computes with it. If
these are roles of one process, they would read the same unchanged file several times.
So its hash is kept by the file's identity, which a rename does not change.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from pathlib import Path

__all__ = ["file_sha256", "remember_sha256"]

# Device, inode, size and the time of the last change, in nanoseconds.
_Identity = tuple[int, int, int, int]
_NUM_KEPT = 64
_known: OrderedDict[_Identity, str] = OrderedDict()
_lock = threading.Lock()


def file_sha256(path: Path) -> str:
    """Returns the lower-case hexadecimal sha256 of a file. Any thread may ask.

    The file is not read if this process has hashed it before and it has not changed.

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
        path: The file; it is closed.
        sha256: Hash of the bytes that were written, lower-case hexadecimal.

    Raises:
        OSError: The file is not there.
    """
    _keep(_identity(os.stat(path)), sha256)


def _identity(stat: os.stat_result) -> _Identity:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _keep(identity: _Identity, sha256: str) -> None:
    with _lock:
        _known[identity] = sha256
        while len(_known) > _NUM_KEPT:
            _known.popitem(last=False)
