"""Whether this process belongs to tengen, so that tengen may end it."""

from __future__ import annotations

__all__ = ["is_own_process", "mark_own_process"]

_is_own = False


def mark_own_process() -> None:
    """Declares that this process runs only a command or roles of tengen."""
    global _is_own
    _is_own = True


def is_own_process() -> bool:
    """Returns whether this process runs only tengen, and no program that imports it."""
    return _is_own
