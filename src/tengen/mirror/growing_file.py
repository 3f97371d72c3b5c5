"""Files that grow at one host and are copied to another, piece by piece.

The copy is always a beginning of the original. Whoever sends a piece says where it
begins and the checksum of all that lies before it, so that a piece is never taken
twice, never behind a gap, and never behind other bytes than those it belongs to.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from tengen.errors import UsageError
from tengen.mirror.messages import MAX_FILE_BYTES, PIECE_BYTES
from tengen.run import storage_error, sync_directory

__all__ = ["CopiedFiles", "Prefix", "next_piece", "read_prefix"]


class Prefix:
    """How many bytes a file begins with that are known, and their CRC-32."""

    def __init__(self) -> None:
        self.size = 0
        self.crc = 0

    def grow(self, data: bytes) -> None:
        """Adds the bytes that follow."""
        self.crc = zlib.crc32(data, self.crc)
        self.size += len(data)


def next_piece(path: Path, prefix: Prefix) -> bytes:
    """Returns what follows a file's known beginning, at most a piece; b"" at its end.

    Raises:
        FileNotFoundError: The file has gone.
    """
    with open(path, "rb") as file:
        return os.pread(file.fileno(), PIECE_BYTES, prefix.size)


def read_prefix(path: Path, size: int) -> Prefix | None:
    """Returns the beginning of a file of so many bytes; None where it is shorter."""
    prefix = Prefix()
    try:
        with open(path, "rb") as file:
            while prefix.size < size:
                data = file.read(min(1 << 20, size - prefix.size))
                if not data:
                    return None
                prefix.grow(data)
    except FileNotFoundError:
        return prefix if size == 0 else None
    return prefix


class CopiedFiles:
    """The copies at a run's host. Calls for one copy must not overlap."""

    def __init__(self) -> None:
        self._known: dict[Path, Prefix] = {}
        self._named: set[Path] = set()

    def append(self, path: Path, offset: int, crc: int, data: bytes) -> int:
        """Adds a piece to a copy, durably, where it belongs there. Blocks.

        Args:
            path: The copy; its folder exists.
            offset: Where the piece begins.
            crc: CRC-32 of the original's bytes before it.
            data: The piece; empty asks how long the copy is.

        Returns:
            Bytes that the copy has now. Where that is not the piece's end, it was not
            taken: the sender goes on from there.

        Raises:
            UsageError: The copy has other bytes before the piece than the original, or
                would be too large.
            RunError: The disk refuses; nothing was taken, or the copy ends in part of
                the piece.
        """
        prefix = self._prefix(path)
        if offset != prefix.size:
            return prefix.size
        if crc != prefix.crc:
            raise UsageError(
                f"copy ({path.name}, {prefix.size} bytes) is of another file than the "
                f"one that is sent; move it out of the run's folder"
            )
        if not data:
            return prefix.size
        if offset + len(data) > MAX_FILE_BYTES:
            raise UsageError(
                f"copy ({path.name}) must be at most {MAX_FILE_BYTES} bytes; make "
                f"generations smaller"
            )
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if os.pwrite(descriptor, data, offset) != len(data):
                    raise OSError(28, os.strerror(28))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._make_durable(path)
        except OSError as error:
            self._known.pop(path, None)
            raise storage_error(path, error) from error
        prefix.grow(data)
        return prefix.size

    def forget(self, path: Path) -> None:
        """Forgets a copy that was removed."""
        self._known.pop(path, None)
        self._named.discard(path)

    def _make_durable(self, path: Path) -> None:
        """Makes a copy's name durable, and that of its folder, which may be new too."""
        if path not in self._named:
            sync_directory(path.parent)
            sync_directory(path.parent.parent)
            self._named.add(path)

    def _prefix(self, path: Path) -> Prefix:
        """Returns what a copy holds, read once."""
        size = 0
        if path.exists():
            size = path.stat().st_size
            try:
                self._make_durable(path)  # an earlier service may not have come to it
            except OSError as error:
                raise storage_error(path, error) from error
        known = self._known.get(path)
        if known is None or known.size != size:
            known = read_prefix(path, size) or Prefix()
            self._known[path] = known
        return known
