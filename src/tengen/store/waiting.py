"""Waits for the core in time slices, so that Python can handle signals in between."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tengen import _core
from tengen.config import check
from tengen.errors import RunError, UsageError

__all__ = [
    "StoreTimeout",
    "is_over",
    "refused",
    "slice_of",
    "timeout_of",
    "wait_for",
]

T = TypeVar("T")

_SLICE_S = 0.1
_LONGEST_S = 1e8


class StoreTimeout(RunError):
    """Raised if a call's timeout expires; the message says what the call waited for."""


def refused(error: _core.CoreError) -> UsageError:
    """Returns the UsageError for a request that the core refused."""
    return UsageError(str(error))


def is_over(error: UsageError) -> bool:
    """Returns whether the error ended a writer or sampler, which must be reopened."""
    return isinstance(error.__cause__, _core.GoneError | _core.RefusedError)


def timeout_of(value: Any) -> float | None:
    """Returns a timeout in seconds, 0 or more; None for no limit.

    Raises:
        UsageError: The value is not a number.
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not math.isnan(value)
    check(
        is_number, "timeout_s", value, "must be a number of seconds, or None; give one"
    )
    # A negative timeout means no wait.
    return None if value == math.inf else max(0.0, float(value))


def slice_of(timeout_s: float | None) -> float:
    """Returns how many seconds the first attempt of a call may block."""
    timeout_s = timeout_of(timeout_s)
    return _SLICE_S if timeout_s is None else min(timeout_s, _SLICE_S)


def wait_for(
    attempt: Callable[[float], T | None],
    timeout_s: float | None,
    what: str,
    waits: Callable[[], str],
    check_open: Callable[[], None],
) -> T:
    """Calls ``attempt`` until it returns a value other than None.

    Args:
        attempt: Called with the maximum number of seconds to block; returns None to be
            called again.
        timeout_s: Total time to try, 0 or more; None for no limit.
        what: Description of the call, for the error.
        waits: Returns the reason why the store waits, for the error.
        check_open: Raises UsageError if the wait must end.

    Raises:
        StoreTimeout: The timeout expired.
        UsageError: The core refused the call, or ``check_open`` raised.
    """
    timeout_s = timeout_of(timeout_s)
    try:
        result = attempt(slice_of(timeout_s))
        if result is not None:
            return result
        end = None if timeout_s is None else time.monotonic() + timeout_s - _SLICE_S
        check_open()
        while end is None or time.monotonic() < end:
            left = _SLICE_S if end is None else max(0.0, end - time.monotonic())
            result = attempt(min(left, _SLICE_S))
            if result is not None:
                return result
            check_open()
        reason = waits() or "the store is busy"
    except _core.CoreError as error:
        raise refused(error) from error
    raise StoreTimeout(
        f"{what} waited {timeout_s:g} s: {reason}; raise timeout_s to wait longer"
    )
