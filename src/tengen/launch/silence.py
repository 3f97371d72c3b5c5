"""Notices that a process has stopped sending the signs of life that it promised.

A thread of the process itself cannot notice that an extension spins in C code and keeps
the interpreter's lock, because that thread does not run either.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Silence"]


class Silence:
    """Watches one process during one turn; watches nothing before ``heard``.

    Args:
        kill: Ends the process; does not block. Called by a thread of its own.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._is_over = False
        self._until_s = 0.0
        self._otherwise = ""
        self._why = ""

    def heard(self, within_s: float, otherwise: str) -> None:
        """Takes a sign of life.

        Args:
            within_s: Seconds until the next sign must come, or the process is killed.
            otherwise: The reason to report if the process is killed.
        """
        with self._changed:
            until_s = time.monotonic() + within_s
            is_sooner = until_s < self._until_s
            self._until_s, self._otherwise = until_s, otherwise
            # One thread for a whole turn, because hundreds of actors send hundreds of
            # signs a second.
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            elif is_sooner:
                self._changed.notify()

    def end(self) -> str:
        """Ends the watching; returns why the process was killed, "" if it was not."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
            return self._why

    def _watch(self) -> None:
        with self._changed:
            while (
                not self._is_over and (left_s := self._until_s - time.monotonic()) > 0
            ):
                self._changed.wait(left_s)
            if self._is_over:
                return
            self._why = self._otherwise
        self._kill()
