"""Counts of what actors in other processes have made, in files that outlive them.

Each actor adds to its own file, ``RUN/actors/INDEX``, once a block is in the table. The
next process with the same index, which holds the index's lock, continues the file. The
learner reads the sums. Counts are not sent in messages, so none is lost with a process,
and none counts twice when a turn is redone.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path

from tengen.errors import RunError
from tengen.run.layout import RunDirectory
from tengen.run.publish import storage_error
from tengen.run.reading import find_files

__all__ = [
    "ActorCounts",
    "read_actor_counts",
    "read_actor_totals",
    "write_actor_totals",
]

_COUNTS = struct.Struct("<qq")
_CHECKSUM = struct.Struct("<I")
_NUM_TRIES = 5
_RETRY_S = 0.01


class ActorCounts:
    """The counts of one actor; the caller holds the lock of its index. For one thread.

    A count is one write of a few bytes without fsync: it survives SIGKILL of the
    process, and after the loss of a host it may be some seconds old.

    Args:
        run: The run.
        index: The actor's index.

    Raises:
        RunError: The disk refuses, or the file is damaged.
    """

    def __init__(self, run: RunDirectory, index: int) -> None:
        self._path = run.actors / str(index)
        self._num_rows, self._num_episodes = 0, 0
        try:
            run.actors.mkdir(exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise storage_error(self._path, error) from error
        if os.fstat(self._file).st_size > 0:
            self._num_rows, self._num_episodes = _read(self._path)

    def add(self, num_rows: int, num_episodes: int) -> None:
        """Adds frames and ends of episodes that are in the table now.

        Raises:
            RunError: The disk refuses.
        """
        self.set(self._num_rows + num_rows, self._num_episodes + num_episodes)

    def set(self, num_rows: int, num_episodes: int) -> None:
        """Writes what the actor has made in all.

        Raises:
            RunError: The disk refuses.
        """
        self._num_rows, self._num_episodes = num_rows, num_episodes
        content = _COUNTS.pack(num_rows, num_episodes)
        try:
            # One call, so that a kill leaves the old counts or the new ones.
            os.pwrite(self._file, content + _CHECKSUM.pack(zlib.crc32(content)), 0)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """Frees the file. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_actor_counts(run: RunDirectory) -> dict[str, int]:
    """Returns ``num_rows`` and ``num_episodes`` of all actors; {} without actors.

    Raises:
        RunError: A file cannot be read, or is damaged.
    """
    paths = find_files(run.actors, "[0-9]*")
    found = [_read(path) for path in paths if path.stat().st_size > 0]
    if not found:
        return {}
    num_rows, num_episodes = (sum(counts) for counts in zip(*found, strict=True))
    return {"num_rows": num_rows, "num_episodes": num_episodes}


def read_actor_totals(run: RunDirectory, index: int) -> tuple[int, int]:
    """Returns the frames and the ends of episodes of one actor so far.

    Raises:
        RunError: Its file cannot be read, or is damaged.
    """
    path = run.actors / str(index)
    if not path.exists() or path.stat().st_size == 0:
        return 0, 0
    return _read(path)


def write_actor_totals(run: RunDirectory, index: int, totals: tuple[int, int]) -> None:
    """Writes what an actor has made in all; the caller holds the lock of its index.

    Raises:
        RunError: The disk refuses, or the file is damaged.
    """
    counts = ActorCounts(run, index)
    try:
        counts.set(*totals)
    finally:
        counts.close()


def _read(path: Path) -> tuple[int, int]:
    for _ in range(_NUM_TRIES):
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise storage_error(path, error) from error
        counts, checksum = content[: _COUNTS.size], content[_COUNTS.size :]
        if checksum == _CHECKSUM.pack(zlib.crc32(counts)):
            num_rows, num_episodes = _COUNTS.unpack(counts)
            return num_rows, num_episodes
        time.sleep(_RETRY_S)  # the actor was writing
    raise RunError(
        f"counts of an actor ({path}) are damaged; remove the file, whose frames are "
        f"then no longer counted"
    )
