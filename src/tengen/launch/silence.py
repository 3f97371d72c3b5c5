"""Notices that a process says nothing any more, which it promised to do.

A thread of the process itself cannot tell that an extension spins in C and keeps the
interpreter's lock, as that thread does not run either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Silence"]


class Silence:
    """Watches one process during one turn; watches nothing before ``heard``.

    Args:
        kill: Ends the process; does not block. Called by a thread of its own.
    """

    def __init__(self, kill: Callable[[], None]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._why = ""

    def heard(self, within_s: float, otherwise: str) -> None:
        """Takes a sign of life.

        Args:
            within_s: Seconds until the next one, or the process is killed.
            otherwise: Why the process died then.
        """
        with self._lock:
            self._cancel()
            self._timer = threading.Timer(within_s, self._end_it, (otherwise,))
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> str:
        """Watches no longer; returns why the process was killed, "" if it was not."""
        with self._lock:
            self._cancel()
            return self._why

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_it(self, otherwise: str) -> None:
        with self._lock:
            if self._timer is not threading.current_thread():
                return  # a sign of life came in the last moment
            self._why = otherwise
        self._kill()
