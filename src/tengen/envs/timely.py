"""An environment wrapper that sets a time limit for each call.

The wrapper is for environments in the process that the user started. In a run, an actor
whose environment hangs exits instead, and the launcher restarts the actor.
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
from typing import Any, TypeVar

from numpy.typing import NDArray

from tengen.envs.env import Arrays, CompiledEnv, Env, EnvWrapper, Step
from tengen.errors import RunError, TengenWarning
from tengen.observe.cpu_time import kill_descendants
from tengen.own_process import is_own_process

_Result = TypeVar("_Result")


class TimelyEnv(EnvWrapper):
    """An ``Env`` that raises an error if a call hangs; not thread-safe.

    The caller's thread creates, steps and closes the environment, because some
    environments work only in the main thread. See ``Deadline`` for calls that hang.
    A ``CompiledEnv`` is compiled before its first reset, without a time limit.

    Args:
        make: Creates the environment.
        timeout_s: The maximum time of a call in seconds, above 0.
        name: The task, for error messages.
        close_timeout_s: The maximum time of ``close`` in seconds, above 0; None for
            ``timeout_s``.

    Raises:
        UsageError: As ``make``.
        RunError: ``make`` hangs.
    """

    def __init__(
        self,
        make: Callable[[], Env],
        timeout_s: float,
        name: str,
        close_timeout_s: float | None = None,
    ) -> None:
        self._name = name
        self._close_timeout_s = close_timeout_s or timeout_s
        self._deadline = Deadline(timeout_s, f"environment ({name})")
        self._deadline.__enter__()
        self._is_over = self._is_compiled = False
        try:
            super().__init__(self._call(make, "while it is made"))
        except BaseException:
            self._end()
            raise

    def reset(self) -> Arrays:
        """See ``Env.reset``.

        Raises:
            RunError: The call hangs.
            EnvError: The environment cannot be compiled; it is closed.
        """
        if isinstance(self._env, CompiledEnv) and not self._is_compiled:
            try:
                self._env.compile()
            except BaseException:
                self.close()
                raise
            self._is_compiled = True
        return self._call(super().reset, "in reset")

    def step(self, actions: NDArray[Any]) -> Step:
        """See ``Env.step``.

        Raises:
            RunError: The step hangs, or as for ``Env.step``.
        """
        return self._call(lambda: self._env.step(actions), "in step")

    def close(self) -> None:
        """See ``Env.close``.

        Raises:
            RunError: The call hangs.
        """
        if self._is_over:
            return
        self._deadline.timeout_s = self._close_timeout_s
        try:
            self._call(self._env.close, "in close")
        finally:
            self._end()

    def _call(self, work: Callable[[], _Result], where: str) -> _Result:
        try:
            with self._deadline.during(where):
                return work()
        except HangError:
            self._end()  # do not close the environment, because close would hang too
            raise RunError(
                f"environment ({self._name}) hangs {where}: no answer for "
                f"{self._deadline.timeout_s:g} s; correct it"
            ) from None

    def _end(self) -> None:
        self._is_over = True
        self._deadline.__exit__()


# The signal that interrupts a call that hangs. By default, processes ignore SIGURG.
_SIGNAL = getattr(signal, "SIGURG", None)
# Seconds that an interrupted call has to clean up before the process is terminated.
_GRACE_S = 5.0
_POLL_S = 0.5


class HangError(BaseException):
    """Raised if a call exceeds its time limit; the message is the name of the call.

    It is a BaseException, because it is raised inside external code, where an
    ``except Exception`` must not catch it.
    """


class Deadline:
    """Raises ``HangError`` if a call into external code exceeds a time limit.

    The exception interrupts the call if it runs Python code or waits in a system call,
    in the main thread. If that fails and tengen started the process
    (``tengen.own_process``), the process prints one line and exits with code 1. In a
    program that imports tengen, the line is a warning, and the exception is raised when
    the call returns. A call that holds the GIL is not detected.

    The class is a context manager and not thread-safe.

    Args:
        timeout_s: The maximum time of a call in seconds, above 0.
        what: Name of the external code, for the printed line.
        before_end: Called from another thread with the name of the call, before the
            process exits.

    Attributes:
        timeout_s: The time limit; may be changed between two calls.
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
        # Name and start time of a call. A tuple, so that updates are atomic.
        self._call: tuple[str, float] | None = None
        self._late: tuple[str, float] | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._can_interrupt = False
        self._previous: Any = None

    def __enter__(self) -> Deadline:
        """Starts the thread that watches the calls."""
        main = threading.main_thread()
        if _SIGNAL is not None and threading.current_thread() is main:
            self._can_interrupt = True
            self._previous = signal.signal(_SIGNAL, self._interrupt)
        # A daemon thread does not keep the process from exiting.
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops the thread that watches the calls. Idempotent."""
        self._is_over.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        # Keep a signal handler that the environment or a later Deadline has installed.
        if _SIGNAL is not None and signal.getsignal(_SIGNAL) == self._interrupt:
            # None means that C code set the handler, which Python cannot restore.
            before = signal.SIG_DFL if self._previous is None else self._previous
            signal.signal(_SIGNAL, before)

    @contextlib.contextmanager
    def during(self, call: str) -> Iterator[None]:
        """Applies the time limit to the call made in this ``with`` block.

        Args:
            call: Name of the call, for error messages.

        Raises:
            HangError: The call exceeded the limit: it was interrupted or returned late.
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
        if callable(self._previous):  # the handler of another Deadline or the user
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
            f"{self._what} hangs ({call}): no answer for {self.timeout_s:g} s, and it "
            "cannot be interrupted; correct it"
        )
        if not is_own_process():
            with contextlib.suppress(TengenWarning):  # warnings may be errors
                warnings.warn(line, TengenWarning, stacklevel=1)
            return
        self._before_end(call)
        print(f"tengen: {line}", file=sys.stderr, flush=True)
        kill_descendants()  # such as a simulator process
        os._exit(1)
