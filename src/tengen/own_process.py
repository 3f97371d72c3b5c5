"""Whether this process is tengen's own: then tengen may end it."""

from __future__ import annotations

import atexit
import gc

__all__ = ["is_own_process", "mark_own_process"]

_is_own = False


def mark_own_process() -> None:
    """Says that this process runs a command of tengen, or roles, and nothing else.

    Its exit then skips the garbage collection of all that was imported, which takes a
    fifth of the time that importing torch does.
    """
    global _is_own
    _is_own = True
    atexit.register(gc.freeze)


def is_own_process() -> bool:
    """Returns whether it is; else tengen is a library of somebody's program."""
    return _is_own
