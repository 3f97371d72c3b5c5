"""Copies of files that grow on another host and arrive in chunks.

A copy is always a prefix of the original file. Each chunk comes with its offset and
with the checksum of all preceding bytes. So appends are idempotent, and leave no gap or
mix of two files.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import NamedTuple

from tengen.errors import UsageError
from tengen.remote.messages import MAX_FILE_BYTES
from tengen.run import storage_error, sync_directory


class Prefix(NamedTuple):
    """The size and CRC-32 of a prefix of a file."""

    size: int = 0
    crc: int = 0

    def plus(self, data: bytes) -> Prefix:
        """Returns the size and CRC-32 of this prefix followed by ``data``."""
        return Prefix(self.size + len(data), zlib.crc32(data, self.crc))


def read_prefix(path: Path, size: int) -> Prefix | None:
    """Returns the prefix of ``size`` bytes of a file, or None if the file is shorter.

    Raises:
        OSError: The file cannot be read. A missing file counts as empty.
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
    """Appends chunks to copies of mirrors' files, on the run's host.

    Threads may append to different copies concurrently, but not to the same copy.
    """

    def __init__(self) -> None:
        self._known: dict[Path, Prefix] = {}
        self._named: set[Path] = set()

    def append(self, path: Path, before: Prefix, data: bytes) -> int:
        """Appends a chunk durably if it starts at the end of the copy. Blocks.

        Args:
            path: The path of the copy. Its folder must exist.
            before: The prefix of the original file up to the chunk.
            data: The chunk. An empty chunk only queries the size of the copy.

        Returns:
            The size of the copy in bytes. If the chunk does not end at this size, it
            was not appended, and the sender must resume from this size.

        Raises:
            UsageError: The copy differs from the original before the chunk, or would
                become too large.
            RunError: The write failed; the copy may end with a part of the chunk.
        """
        held = self.prefix(path)
        if before.size != held.size:
            return held.size
        if before != held:
            raise UsageError(
                f"copy ({path.name}, {held.size} bytes) is not a copy of the file "
                "being sent; move it out of the run's folder"
            )
        if not data:
            return held.size
        after = held.plus(data)
        if after.size > MAX_FILE_BYTES:
            raise UsageError(
                f"copy ({path.name}) must be at most {MAX_FILE_BYTES} bytes; play "
                "smaller generations"
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
        """Returns the size and CRC-32 of a copy; reads the copy unless both are cached.

        Raises:
            RunError: A file operation fails.
        """
        try:
            size = 0
            if path.exists():
                size = path.stat().st_size
                # A killed service may not have made the copy's name durable.
                self._make_durable(path)
            known = self._known.get(path)
            if known is None or known.size != size:
                known = self._known[path] = read_prefix(path, size) or Prefix()
        except OSError as error:
            raise storage_error(path, error) from error
        return known

    def remove(self, path: Path) -> None:
        """Removes a copy, if it exists.

        Raises:
            OSError: The file cannot be removed.
        """
        path.unlink(missing_ok=True)
        self._known.pop(path, None)
        self._named.discard(path)

    def _make_durable(self, path: Path) -> None:
        """Makes the directory entries of a copy and its folder durable."""
        if path not in self._named:
            sync_directory(path.parent)
            sync_directory(path.parent.parent)
            self._named.add(path)
