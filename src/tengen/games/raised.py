"""What an author's code raised, as an error that names the method."""

from __future__ import annotations

from typing import Any

from tengen.errors import UsageError

__all__ = ["RAISED", "call_method", "raised"]

RAISED = (Exception, SystemExit)
"""What an author's code may raise: a game that leaves the process is broken too."""


def call_method(name: str, own: Any, ply: int, method: str, *args: Any) -> Any:
    """Returns what a method of a game returns.

    Args:
        name: What messages call the game.
        own: The game.
        ply: Moves made so far.
        method: Its name.
        args: What it is given.

    Raises:
        UsageError: It raised.
    """
    try:
        return getattr(own, method)(*args)
    except RAISED as error:
        raise raised(f"{name}.{method} (ply {ply})", error) from error


def raised(what: str, error: BaseException) -> UsageError:
    """Returns the error of an author's code that raised ``error``.

    Args:
        what: Name and value, as messages begin.
        error: What it raised.
    """
    return UsageError(
        f"{what} must not raise; "
        f"it raised {' '.join(f'{type(error).__name__}: {error}'.split())}"
    )
