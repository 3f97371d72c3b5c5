"""How long a learner that is to stop still waits for the others."""

from __future__ import annotations

import threading
import time

__all__ = ["Grace"]

_GRACE_S = 5.0


class Grace:
    """The time that a step has which is under way when a stop comes.

    Args:
        stop: Is set once, and stays so.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it is; the time begins where this is first asked of a set stop."""
        if not self._stop.is_set():
            return False
        self._until = self._until or time.monotonic() + _GRACE_S
        return time.monotonic() >= self._until
