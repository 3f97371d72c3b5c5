"""Waits for the core in short time slices, between which Python handles signals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tengen import _core
from tengen.config import check
from tengen.errors import RunError, UsageError

T = TypeVar("T")

_SLICE_S = 0.1
_LONGEST_S = 1e8


class StoreTimeout(RunError):
    """Raised if the timeout of a call expires. The message gives the reason."""


def refused(error: _core.CoreError) -> UsageError:
    """Returns the UsageError for a request that the core rejected."""
    return UsageError(str(error))


def is_over(error: UsageError) -> bool:
    """Returns whether ``error`` ended its writer or sampler, which must be reopened."""
    return isinstance(error.__cause__, _core.GoneError | _core.RefusedError)


def timeout_of(value: Any) -> float | None:
    """Returns ``value`` as a timeout in seconds, at least 0; None for no limit.

    Raises:
        UsageError: ``value`` is not a number.
    """
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not math.isnan(value)
    check(
        is_number, "timeout_s", value, "must be a number of seconds or None; pass one"
    )
    # A negative timeout is treated as 0, which means no wait.
    return None if value == math.inf else max(0.0, float(value))


def slice_of(timeout_s: float | None) -> float:
    """Returns the maximum seconds that the first attempt of a call may block."""
    timeout_s = timeout_of(timeout_s)
    return _SLICE_S if timeout_s is None else min(timeout_s, _SLICE_S)


def wait_for(
    attempt: Callable[[float], T | None],
    timeout_s: float | None,
    what: str,
    waits: Callable[[], str],
    check_open: Callable[[], None],
) -> T:
    """Calls ``attempt`` until it returns a value other than None, which is returned.

    Args:
        attempt: Called with the maximum number of seconds to block. Returns None if it
            must be called again.
        timeout_s: Maximum total wait in seconds; None for no limit.
        what: Description of the call, for the error message.
        waits: Returns the reason why the store waits, for the error message.
        check_open: Raises UsageError if the store has been closed.

    Raises:
        StoreTimeout: The timeout expired.
        UsageError: The core rejected the call, or ``check_open`` raised.
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
