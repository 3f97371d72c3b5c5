"""The exceptions of tengen, and the form of their messages.

A message is one line: ``<name> (<value>) <rule>; <what to do>``. The command line
prints it after ``tengen:`` and exits with the exception's exit code.
"""

from __future__ import annotations

import difflib
import errno
import sys
from collections.abc import Iterable

# The maximum number of known names that a message lists.
_MOST_NAMES = 20
_MOST_CHARACTERS = 200


class TengenError(Exception):
    """Base class of the errors that tengen reports to users in one line.

    Attributes:
        exit_code: The exit code of the process if the error is not handled.
    """

    exit_code = 1


class UsageError(TengenError):
    """Invalid usage: a command, config, model or run directory was rejected."""

    exit_code = 2


class TengenWarning(UserWarning):
    """Warns that an operation continues, but not as requested; shown in one line."""


class RunError(TengenError):
    """A failure at run time, such as a full disk, a dead role or a damaged file."""

    exit_code = 1


class DiskFullError(RunError):
    """The disk is full. The same call succeeds when there is enough space.

    Attributes:
        needed_bytes: The number of bytes needed; 0 if unknown.
    """

    def __init__(self, message: str, needed_bytes: int = 0) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes


class EnvError(RunError):
    """An environment raised an exception, or returned values outside its spaces.

    New copies of the environment may work, so an actor in its own process is restarted.
    """


def os_reason(error: OSError) -> str:
    """Returns the operating system's description of ``error``, in lower case."""
    return (error.strerror or str(error)).lower()


def refusal(error: BaseException) -> TengenError | None:
    """Converts an error of tengen, its core or the system to a TengenError.

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
        return RunError("memory (all of it) is used up; request less, or free some")
    torch = sys.modules.get("torch")  # None if torch is not loaded
    if torch is not None and isinstance(error, torch.OutOfMemoryError):
        return RunError(
            "device memory (all of it) is used up; free some, or request less"
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
    """Returns the advice for an error message about an unknown name.

    Args:
        name: The unknown name.
        known: The valid names.
        otherwise: The advice if no name is similar; empty to list the known names.

    Returns:
        ``did you mean "x"?`` for a similar name, else ``otherwise`` if given, else
        ``known: a, b, c`` or, for over twenty names, ``the nearest of 42: a, b, c``.
    """
    names = sorted(known)
    name = name[:_MOST_CHARACTERS]  # longer names would only slow the search
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
