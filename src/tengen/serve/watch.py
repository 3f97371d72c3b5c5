"""What pages show of a run, read once for all pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tengen.errors import RunError, TengenError, UsageError
from tengen.observe import RunView
from tengen.observe.status import read_status
from tengen.run import RunDirectory
from tengen.serve.shown import memory_of

__all__ = ["Watch", "Watches"]

# Looks take at most this share of one core, however large a run is.
_SHARE = 0.05


class Watch:
    """Looks at one run now and then. Thread-safe; each look blocks.

    Args:
        run: The run.
        look_s: Seconds between two looks, at least.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self,
        run: RunDirectory,
        look_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self._look_s = look_s
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = float("-inf")
        self._view: RunView | None = None
        self._status: dict[str, Any] = {}
        self._error: TengenError | None = None

    @contextmanager
    def look(self) -> Iterator[tuple[dict[str, Any], RunView]]:
        """Yields the run's status and view, which do not change meanwhile.

        The status is that of ``tengen status``, with ``memory`` of ``memory_of``.

        Raises:
            UsageError: The run is of a newer schema, or was removed.
            RunError: A file of it is damaged.
        """
        with self._lock:
            begun_s = self._clock()
            if begun_s >= self._next_s:
                self._read()
                took_s = self._clock() - begun_s
                self._next_s = self._clock() + max(self._look_s, took_s / _SHARE)
            if self._error is not None:
                raise self._error
            assert self._view is not None
            yield self._status, self._view

    def _read(self) -> None:
        self._error = None
        try:
            if self.run.is_new:
                raise UsageError(
                    f"run ({self.run.path}) is gone; open / for the others"
                )
            if self._view is None:
                self._view = RunView(self.run)
            status = read_status(self.run, self._view.read())
            self._status = {**status, "memory": memory_of(status)}
        except TengenError as error:
            self._error = error
        except OSError as error:
            # Of a disk that went away, or a folder that was removed meanwhile.
            self._error = RunError(f"run ({self.run.path}) cannot be read: {error}")


class Watches:
    """The watches of all runs that were looked at. Thread-safe.

    Args:
        look_s: As for ``Watch``.
    """

    def __init__(self, look_s: float) -> None:
        self._look_s = look_s
        self._lock = threading.Lock()
        self._found: dict[str, Watch] = {}

    def of(self, run: RunDirectory) -> Watch:
        """Returns the watch of a run."""
        with self._lock:
            key = str(run.path)
            if key not in self._found:
                self._found[key] = Watch(run, self._look_s)
            return self._found[key]
