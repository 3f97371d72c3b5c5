"""How long a learner still waits for the others after a stop."""

from __future__ import annotations

import threading
import time

__all__ = ["Grace"]

_GRACE_S = 5.0


class Grace:
    """The time that a step under way may still take after a stop.

    Args:
        stop: The event of the stop, which is never cleared.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the time is over; it begins with the first call after the stop."""
        if not self._stop.is_set():
            return False
        self._until = self._until or time.monotonic() + _GRACE_S
        return time.monotonic() >= self._until
