"""The exceptions of tengen, and the one form of their messages.

A message is one line: ``<name> (<value>) <rule>; <what to do>``. The command line
prints it after ``tengen:`` and leaves with the exception's exit code.
"""

from __future__ import annotations

import difflib
import errno
import sys
from collections.abc import Iterable

__all__ = [
    "DiskFullError",
    "EnvError",
    "RunError",
    "TengenError",
    "TengenWarning",
    "UsageError",
    "did_you_mean",
    "os_reason",
    "refusal",
]


# The most names in a message that lists the known ones.
_MOST_NAMES = 20
_MOST_CHARACTERS = 200


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
    """Something continues, but not as asked. The command line shows its one line."""


class RunError(TengenError):
    """A failure while running: a full disk, a dead role, a damaged file."""

    exit_code = 1


class DiskFullError(RunError):
    """The disk is full; the same call succeeds once there is room.

    Attributes:
        needed_bytes: How many bytes are needed; 0 where that is not known.
    """

    def __init__(self, message: str, needed_bytes: int = 0) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes


class EnvError(RunError):
    """An environment raised, or returned values that its spaces do not allow.

    New copies of the environment may work, so an actor that is a process of its own is
    started again.
    """


def os_reason(error: OSError) -> str:
    """Returns why the system refused, as a phrase for use inside a message."""
    return (error.strerror or str(error)).lower()


def refusal(error: BaseException) -> TengenError | None:
    """Returns an error of tengen, its core or the system, in the one form of messages.

    Returns:
        The error to report; None for any other exception, which is a bug and needs its
        traceback.
    """
    if isinstance(error, TengenError):
        return error
    if isinstance(error, OSError):
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return (DiskFullError if is_full else RunError)(_os_message(error))
    if isinstance(error, MemoryError):
        return RunError("memory (all of it) is used up; ask for less, or free some")
    torch = sys.modules.get("torch")  # not loaded, it raised nothing
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return RunError(
            "device memory (all of it) is used up; free some, or ask for less"
        )
    core = sys.modules.get("tengen._core")
    if core is not None and isinstance(error, core.SchemaError):
        return UsageError(str(error))
    if core is not None and isinstance(error, core.DiskFullError):
        return DiskFullError(str(error))
    if core is not None and isinstance(error, core.CoreError):
        return RunError(str(error))
    return None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns the advice for an unknown name.

    Args:
        name: What was asked for.
        known: Every name that would have been accepted.
        otherwise: The advice where no name is near; empty lists the known names.

    Returns:
        ``did you mean "x"?`` if one is near, else ``otherwise`` if given, else ``known:
        a, b, c`` or, for more than twenty names, ``the nearest of 42: a, b, c``.
    """
    names = sorted(known)
    name = name[:_MOST_CHARACTERS]  # longer than any known name, and slow to compare
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f'did you mean "{near[0]}"?'
    if otherwise:
        return otherwise
    if len(names) > _MOST_NAMES:
        nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.0)
        return f"the nearest of {len(names)}: {', '.join(nearest)}"
    return "known: " + (", ".join(names) if names else "none")


def _os_message(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"disk ({error.filename or 'full'}) has no space left; free some"
    return f"file ({error.filename}) cannot be used, {os_reason(error)}; check it"
