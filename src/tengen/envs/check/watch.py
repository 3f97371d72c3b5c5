"""A watch that notices calls that never return."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

__all__ = ["HangError", "Watch"]

_POLL_S = 0.05


class HangError(Exception):
    """A call takes longer than it may; its text names the call."""


class Watch:
    """Runs a check in a thread, and notices which call of it hangs.

    A call that hangs in C code and keeps the interpreter's lock is not noticed.

    Args:
        timeout_s: Seconds that a call may take.
    """

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        # Set by one assignment, so that the other thread never sees a part of it.
        self._call: tuple[str, float] | None = None

    @contextlib.contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Records which call runs inside the context."""
        self._call = what, time.monotonic()
        try:
            yield
        finally:
            self._call = None

    def run(self, work: Callable[[], None]) -> None:
        """Runs ``work`` to its end; blocks. A thread that hangs is left behind.

        Raises:
            HangError: A call hangs.
            BaseException: What ``work`` raised.
        """
        raised: list[BaseException] = []
        is_done = threading.Event()

        def runs() -> None:
            try:
                work()
            except BaseException as error:
                raised.append(error)
            finally:
                is_done.set()

        # A daemon, so that it does not keep the process from ending.
        threading.Thread(target=runs, name="environment", daemon=True).start()
        while not is_done.wait(_POLL_S):
            call = self._call
            if call is not None and time.monotonic() - call[1] > self.timeout_s:
                raise HangError(call[0])
        if raised:
            raise raised[0]
