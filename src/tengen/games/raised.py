"""Converts exceptions of a user's game to errors that name the method."""

from __future__ import annotations

from typing import Any

from tengen.errors import UsageError

__all__ = ["RAISED", "call_method", "raised"]

RAISED = (Exception, SystemExit)
"""Exceptions that count as errors of user code, including ``sys.exit``."""


def call_method(name: str, own: Any, ply: int, method: str, *args: Any) -> Any:
    """Calls a method of a game and returns its result.

    Args:
        name: The game's name in messages.
        own: The game.
        ply: Number of moves made so far.
        method: Name of the method.
        args: Arguments of the method.

    Raises:
        UsageError: The method raised.
    """
    try:
        return getattr(own, method)(*args)
    except RAISED as error:
        raise raised(f"{name}.{method} (ply {ply})", error) from error


def raised(what: str, error: BaseException) -> UsageError:
    """Returns the UsageError for user code that raised ``error``.

    Args:
        what: Start of the message: a name with a value in parentheses.
        error: The exception.
    """
    return UsageError(
        f"{what} must not raise; "
        f"it raised {' '.join(f'{type(error).__name__}: {error}'.split())}"
    )
