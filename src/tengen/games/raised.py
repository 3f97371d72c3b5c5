"""Turns exceptions of a user's own game into errors that name the method."""

from __future__ import annotations

from typing import Any

from tengen.errors import UsageError

__all__ = ["RAISED", "call_method", "raised"]

RAISED = (Exception, SystemExit)
"""Exceptions that count as errors of a user's game, exits included."""


def call_method(name: str, own: Any, ply: int, method: str, *args: Any) -> Any:
    """Returns what a method of a game returns.

    Args:
        name: The game's name in messages.
        own: The game.
        ply: Moves made so far.
        method: Name of the method.
        args: Its arguments.

    Raises:
        UsageError: The method raised.
    """
    try:
        return getattr(own, method)(*args)
    except RAISED as error:
        raise raised(f"{name}.{method} (ply {ply})", error) from error


def raised(what: str, error: BaseException) -> UsageError:
    """Returns the error of user code that raised ``error``.

    Args:
        what: Name and value, the beginning of the message.
        error: The exception.
    """
    return UsageError(
        f"{what} must not raise; "
        f"it raised {' '.join(f'{type(error).__name__}: {error}'.split())}"
    )
