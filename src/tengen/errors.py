"""The exceptions of tengen, and the one form of their messages.

A message is one line: ``<name> (<value>) <rule>; <what to do>``. The command line
prints it after ``tengen:`` and leaves with the exception's exit code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["RunError", "TengenError", "TengenWarning", "UsageError", "did_you_mean"]


class TengenError(Exception):
    """The base of every error that tengen raises on purpose.

    Attributes:
        exit_code: What the process returns when nobody handles the error.
    """

    exit_code = 1


class UsageError(TengenError):
    """Bad usage: a command, a config, a model or a run directory that is refused."""

    exit_code = 2


class TengenWarning(UserWarning):
    """Something goes on, but not as asked. The command line shows its one line."""


class RunError(TengenError):
    """A failure while running: a full disk, a dead role, a damaged file."""

    exit_code = 1


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the advice for an unknown name.

    Args:
        name: What was asked for.
        known: Every name that would have been accepted.

    Returns:
        ``did you mean "x"?`` when one is near, else ``known: a, b, c``.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    return "known: " + (", ".join(names) if names else "none")
