"""Whether tengen owns this process, so that tengen may end it."""

from __future__ import annotations

import atexit
import gc

_is_own = False


def mark_own_process() -> None:
    """Declares that this process runs only a tengen command or roles.

    At exit Python then skips the garbage collection of all imported objects, which
    takes a fifth as long as importing torch.
    """
    global _is_own
    _is_own = True
    atexit.register(gc.freeze)


def is_own_process() -> bool:
    """Returns whether this process runs only tengen, and not a user's own program."""
    return _is_own
