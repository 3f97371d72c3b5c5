"""Copies of files that grow on another host and are sent piece by piece.

A copy is always a prefix of the original. Each piece comes with its offset and with the
checksum of all bytes before it. So no piece is appended twice, after a gap, or to other
bytes than those that it follows.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import NamedTuple

from tengen.errors import UsageError
from tengen.remote.messages import MAX_FILE_BYTES
from tengen.run import storage_error, sync_directory

__all__ = ["CopiedFiles", "Prefix", "read_prefix"]


class Prefix(NamedTuple):
    """The first bytes of a file: how many they are, and their CRC-32."""

    size: int = 0
    crc: int = 0

    def plus(self, data: bytes) -> Prefix:
        """Returns the prefix with the bytes that follow it."""
        return Prefix(self.size + len(data), zlib.crc32(data, self.crc))


def read_prefix(path: Path, size: int) -> Prefix | None:
    """Returns the prefix of ``size`` bytes of a file; None if the file is shorter.

    Raises:
        OSError: The file cannot be read; a missing file counts as empty.
    """
    prefix = Prefix()
    try:
        with open(path, "rb") as file:
            while prefix.size < size:
                data = file.read(min(1 << 20, size - prefix.size))
                if not data:
                    return None
                prefix = prefix.plus(data)
    except FileNotFoundError:
        return prefix if size == 0 else None
    return prefix


class CopiedFiles:
    """The copies at the run's host.

    Threads may append to different copies at the same time, but not to the same copy.
    """

    def __init__(self) -> None:
        self._known: dict[Path, Prefix] = {}
        self._named: set[Path] = set()

    def append(self, path: Path, before: Prefix, data: bytes) -> int:
        """Appends a piece durably if it continues the copy. Blocks.

        Args:
            path: The copy; its folder exists.
            before: The original's bytes before the piece.
            data: The piece; an empty piece asks for the copy's size.

        Returns:
            The copy's size in bytes. If that is not the end of the piece, the piece was
            not appended, and the sender continues from that size.

        Raises:
            UsageError: The copy has other bytes before the piece than the original, or
                would be too large.
            RunError: The disk refuses; the copy may end in a part of the piece.
        """
        held = self.prefix(path)
        if before.size != held.size:
            return held.size
        if before != held:
            raise UsageError(
                f"copy ({path.name}, {held.size} bytes) is of another file than the "
                f"one that is sent; move it out of the run's folder"
            )
        if not data:
            return held.size
        after = held.plus(data)
        if after.size > MAX_FILE_BYTES:
            raise UsageError(
                f"copy ({path.name}) must be at most {MAX_FILE_BYTES} bytes; make "
                f"generations smaller"
            )
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if os.pwrite(descriptor, data, held.size) != len(data):
                    raise OSError(28, os.strerror(28))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._make_durable(path)
        except OSError as error:
            self._known.pop(path, None)
            raise storage_error(path, error) from error
        self._known[path] = after
        return after.size

    def prefix(self, path: Path) -> Prefix:
        """Returns the size and checksum of a copy; the file is read once.

        Raises:
            RunError: The disk refuses.
        """
        try:
            size = 0
            if path.exists():
                size = path.stat().st_size
                # A service that was killed may not have come to it.
                self._make_durable(path)
            known = self._known.get(path)
            if known is None or known.size != size:
                known = self._known[path] = read_prefix(path, size) or Prefix()
        except OSError as error:
            raise storage_error(path, error) from error
        return known

    def remove(self, path: Path) -> None:
        """Removes a copy.

        Raises:
            OSError: The disk refuses.
        """
        path.unlink(missing_ok=True)
        self._known.pop(path, None)
        self._named.discard(path)

    def _make_durable(self, path: Path) -> None:
        """Makes the names of a copy and of its folder, which may be new, durable."""
        if path not in self._named:
            sync_directory(path.parent)
            sync_directory(path.parent.parent)
            self._named.add(path)
