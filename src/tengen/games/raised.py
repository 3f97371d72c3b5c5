"""Converts exceptions in user code to errors that name the method."""

from __future__ import annotations

from typing import Any

from tengen.errors import UsageError

RAISED = (Exception, SystemExit)
"""The exceptions that are converted, including the one that ``sys.exit`` raises."""


def call_method(name: str, own: Any, ply: int, method: str, *args: Any) -> Any:
    """Calls a method of a user's game and returns its result.

    Args:
        name: The game's name in error messages.
        own: The user's game.
        ply: Number of moves played so far.
        method: Name of the method.
        args: Arguments of the method.

    Raises:
        UsageError: The method raised an exception.
    """
    try:
        return getattr(own, method)(*args)
    except RAISED as error:
        raise raised(f"{name}.{method} (ply {ply})", error) from error


def raised(what: str, error: BaseException) -> UsageError:
    """Returns a UsageError that reports an exception of user code.

    Args:
        what: What raised, such as ``MyGame.apply (ply 3)``; the message begins with it.
        error: The exception that user code raised.
    """
    return UsageError(
        f"{what} must not raise; "
        f"it raised {' '.join(f'{type(error).__name__}: {error}'.split())}"
    )
