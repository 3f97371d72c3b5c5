"""Taking a lock that its holder is about to give back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tengen.errors import UsageError
from tengen.roles.role import RoleContext

__all__ = ["patiently"]

_PATIENCE_S = 600.0
"""A process whose runner is gone needs only seconds of CPU time to end, but on a busy
machine it may wait minutes for them."""
_RETRY_S = 0.5

Taken = TypeVar("Taken")


def patiently(take: Callable[[], Taken], context: RoleContext) -> Taken:
    """Returns what ``take`` returns, once the present holder has given it back.

    For locks that the run gives to one process. Another holder is a process that is
    ending, or a mirror's place that the run's service gives up within seconds
    (``run.evict_mirrors``).

    Args:
        take: Takes the lock, or raises UsageError.
        context: Its stop ends the waiting; progress says who has the lock.

    Raises:
        UsageError: Another process holds it for longer.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return take()
        except UsageError as error:
            if time.monotonic() >= until or context.stop.wait(_RETRY_S):
                raise
            context.progress({"stage": f"waiting, {str(error).partition(';')[0]}"})
