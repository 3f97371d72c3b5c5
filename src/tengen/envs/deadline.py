"""A deadline for each call into an environment, which runs in the caller's thread.

Environments use what only a process's main thread may use: signal handlers, windows,
OpenGL contexts. So the thread that asks makes and steps them, and another thread
watches the time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tengen.errors import TengenWarning
from tengen.observe.cpu_time import kill_descendants
from tengen.own_process import is_own_process

__all__ = ["Deadline", "HangError"]

# The signal that interrupts a call. It is ignored where nobody handles it.
_SIGNAL = getattr(signal, "SIGURG", None)
# A call that is interrupted may clean up for so long; then the process ends.
_GRACE_S = 5.0
_POLL_S = 0.5


class HangError(BaseException):
    """A call takes longer than it may; its text names the call.

    It is raised inside the call, where ``except Exception`` must not catch it.
    """


class Deadline:
    """Raises an error where a call into foreign code takes too long.

    A late call is interrupted by an exception. This needs Python code, or a system call
    that waits, in the main thread of a process. A call that cannot be interrupted ends
    a process of tengen's own with exit code 1 and one line (``tengen.own_process``). In
    a program that imports tengen the line is a warning, and the exception is raised
    once the call returns. A call that keeps the interpreter's lock is not noticed.

    Used by one thread, as a context.

    Args:
        timeout_s: Seconds that a call may take, above 0.
        what: What runs, for the line with which the process ends.
        before_end: Called by another thread with the late call before the process ends.

    Attributes:
        timeout_s: As given; it may be changed between two calls.
    """

    def __init__(
        self,
        timeout_s: float,
        what: str,
        before_end: Callable[[str], None] = lambda call: None,
    ) -> None:
        self.timeout_s = timeout_s
        self._what = what
        self._before_end = before_end
        # Set by one assignment, so that the other thread never sees a part of it.
        self._call: tuple[str, float] | None = None
        self._late: tuple[str, float] | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._can_interrupt = False
        self._previous: Any = None

    def __enter__(self) -> Deadline:
        """Begins to watch."""
        main = threading.main_thread()
        if _SIGNAL is not None and threading.current_thread() is main:
            self._can_interrupt = True
            self._previous = signal.signal(_SIGNAL, self._interrupt)
        # A daemon, so that it does not keep the process from ending.
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the watch. A second call does nothing."""
        self._is_over.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        # A handler that was set since, by the environment or a later deadline, stays.
        if _SIGNAL is not None and signal.getsignal(_SIGNAL) == self._interrupt:
            # None: C code set it, and Python cannot set it again.
            before = signal.SIG_DFL if self._previous is None else self._previous
            signal.signal(_SIGNAL, before)

    @contextlib.contextmanager
    def during(self, call: str) -> Iterator[None]:
        """Watches the call that is made inside the context.

        Args:
            call: What is called, for messages.

        Raises:
            HangError: The call was late, and was interrupted or has returned.
        """
        this = self._call = call, time.monotonic()
        try:
            yield
        finally:
            self._call = None
        if self._late is this:
            raise HangError(call)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        call = self._call
        if call is not None and call is self._late:
            raise HangError(call[0])
        if callable(self._previous):  # another deadline's, or the user's
            self._previous(number, frame)

    def _watch(self) -> None:
        poll_s = min(_POLL_S, self.timeout_s / 4)
        told = None
        while not self._is_over.wait(poll_s):
            call = self._call
            late_s = 0.0 if call is None else time.monotonic() - call[1]
            if call is None or late_s <= self.timeout_s:
                continue
            if self._late is not call:
                self._late = call
                if self._can_interrupt:
                    main = threading.main_thread().ident
                    signal.pthread_kill(main, _SIGNAL)  # type: ignore[arg-type]
            elif late_s > self.timeout_s + _GRACE_S and told is not call:
                told = call
                self._tell(call[0])

    def _tell(self, call: str) -> None:
        line = (
            f"{self._what} hangs ({call}) for {self.timeout_s:g} s and cannot be "
            f"interrupted; correct it"
        )
        if not is_own_process():
            with contextlib.suppress(TengenWarning):  # where warnings are errors
                warnings.warn(line, TengenWarning, stacklevel=1)
            return
        self._before_end(call)
        print(f"tengen: {line}", file=sys.stderr, flush=True)
        kill_descendants()  # such as its simulator
        os._exit(1)
