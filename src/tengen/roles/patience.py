"""Taking a lock that its holder is about to give back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tengen.errors import UsageError

__all__ = ["patiently"]

_PATIENCE_S = 20.0
_RETRY_S = 0.5

Taken = TypeVar("Taken")


def patiently(take: Callable[[], Taken], stop: threading.Event) -> Taken:
    """Returns what ``take`` returns, once the present holder has given it back.

    For locks that the run gives to one process. Another holder is a process that is
    ending, or a mirror's place that the run's service gives up within seconds
    (``run.evict_mirrors``).

    Args:
        take: Takes the lock, or raises UsageError.
        stop: Ends the waiting.

    Raises:
        UsageError: Another process holds it for longer.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return take()
        except UsageError:
            if time.monotonic() >= until or stop.wait(_RETRY_S):
                raise
