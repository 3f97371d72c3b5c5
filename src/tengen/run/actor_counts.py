"""Counts of the frames and episodes of actors in other processes, stored in files.

Each actor adds its counts to ``RUN/actors/INDEX`` after the steps are in the table. The
next process with the same index, which holds the index's lock, continues the file. The
learner reads the sums. Unlike messages, files lose no counts of a killed process, and a
repeated turn counts no step twice.
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

_COUNTS = struct.Struct("<qq")
_CHECKSUM = struct.Struct("<I")
_NUM_TRIES = 5
_RETRY_S = 0.01


class ActorCounts:
    """The counts of one actor. Used by one thread, which holds the actor's lock.

    Each update is one write of a few bytes without fsync. The counts survive SIGKILL of
    the process; after the loss of a host they may be some seconds old.

    Args:
        run: The run.
        index: The actor's index.

    Raises:
        RunError: The file is damaged or cannot be written.
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
        """Adds the numbers of frames and episode ends in a block that is in the table.

        Raises:
            RunError: The file cannot be written.
        """
        self.set(self._num_rows + num_rows, self._num_episodes + num_episodes)

    def set(self, num_rows: int, num_episodes: int) -> None:
        """Writes the actor's total numbers of frames and episode ends.

        Raises:
            RunError: The file cannot be written.
        """
        self._num_rows, self._num_episodes = num_rows, num_episodes
        content = _COUNTS.pack(num_rows, num_episodes)
        try:
            # A single write, so that a kill leaves either the old or the new counts.
            os.pwrite(self._file, content + _CHECKSUM.pack(zlib.crc32(content)), 0)
        except OSError as error:
            raise storage_error(self._path, error) from error

    def close(self) -> None:
        """Closes the file. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_actor_counts(run: RunDirectory) -> dict[str, int]:
    """Returns the sums ``num_rows`` and ``num_episodes`` over actors; {} for none.

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
    """Returns the numbers of frames and episode ends of one actor so far.

    Raises:
        RunError: The actor's file cannot be read, or is damaged.
    """
    path = run.actors / str(index)
    if not path.exists() or path.stat().st_size == 0:
        return 0, 0
    return _read(path)


def write_actor_totals(run: RunDirectory, index: int, totals: tuple[int, int]) -> None:
    """Writes an actor's total counts. The caller holds the lock of the actor's index.

    Raises:
        RunError: The file is damaged or cannot be written.
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
        time.sleep(_RETRY_S)  # the actor was writing the file
    raise RunError(
        f"counts of an actor ({path}) are damaged; remove the file, and its frames are "
        "no longer counted"
    )
