"""How a role by itself waits while the disk is full, says so, and continues."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tengen.errors import DiskFullError, RunError
from tengen.run import storage_error

__all__ = ["FullDiskPause"]

_RETRY_S = 2.0
_SAY_AGAIN_S = 60.0


class FullDiskPause:
    """Repeats a write to the disk until there is room.

    Used by one thread.

    Args:
        path: The run, whose free disk space is reported.
        stop: Ends the waiting; then the disk's error is raised.
        say: Called with a line for people.
    """

    def __init__(
        self, path: Path, stop: threading.Event, say: Callable[[str], None]
    ) -> None:
        self._path = path
        self._stop = stop
        self._say = say
        self._said_s = -math.inf

    def __call__(self, write: Callable[[], object]) -> None:
        """Calls ``write``, again whenever the disk was full. Blocks until it succeeds.

        Raises:
            DiskFullError: ``stop`` was set before there was room.
        """
        while True:
            try:
                write()
            except DiskFullError as refusal:
                self._tell(refusal)
                if self._stop.wait(_RETRY_S):
                    raise
            else:
                break
        if self._said_s > -math.inf:
            self._said_s = -math.inf
            self._say("goes on, the disk has room again")

    def wait(self, refusal: DiskFullError, num_bytes: int) -> None:
        """Blocks until so many bytes are free on the run's disk.

        Args:
            refusal: The error of a turn, which as a whole cannot just be repeated.
            num_bytes: About how many bytes the turn will need.

        Raises:
            DiskFullError: As ``__call__``.
        """
        self._tell(refusal)
        self(lambda: _reserve(self._path, num_bytes))

    def _tell(self, refusal: RunError) -> None:
        if time.monotonic() - self._said_s < _SAY_AGAIN_S:
            return
        self._said_s = time.monotonic()
        free_mb = shutil.disk_usage(self._path).free / 1e6
        self._say(
            f"waits, the disk of {self._path} is full ({free_mb:,.1f} MB free); free "
            "some space, then the role goes on by itself and nothing durable is lost "
            f"({refusal})"
        )


def _reserve(path: Path, num_bytes: int) -> None:
    """Reserves so many bytes on the disk and frees them again."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)
    except OSError as error:
        raise storage_error(path, error) from error
