"""Whether tengen owns this process, so that tengen may end it."""

from __future__ import annotations

import atexit
import gc

__all__ = ["is_own_process", "mark_own_process"]

_is_own = False
# New objects before a garbage collection. Python's 700 would make it take a tenth of
# the time of an import, and almost all garbage is freed without it.
_NUM_OBJECTS = 50_000


def mark_own_process() -> None:
    """Declares that this process runs only a tengen command or roles.

    Python then collects garbage rarely, and at exit skips the collection of all
    imported objects, which takes a fifth as long as importing torch.
    """
    global _is_own
    _is_own = True
    gc.set_threshold(_NUM_OBJECTS)
    atexit.register(gc.freeze)


def is_own_process() -> bool:
    """Returns whether this process runs only tengen, and not a user's own program."""
    return _is_own
