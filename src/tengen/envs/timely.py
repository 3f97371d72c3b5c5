"""An environment with a deadline for each call.

It is used where an environment is stepped in the process that the user started. An
actor instead ends its own process, and the launcher starts the actor again.
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

from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.errors import RunError, TengenWarning
from tengen.observe.cpu_time import kill_descendants
from tengen.own_process import is_own_process

__all__ = ["Deadline", "HangError", "TimelyEnv"]

_Result = TypeVar("_Result")


class TimelyEnv:
    """An ``Env`` that raises an error where a call hangs; used by one thread.

    That thread makes, steps and closes the environment, because some environments work
    only in the main thread; see ``Deadline`` for calls that hang.

    Args:
        make: Returns the environment.
        timeout_s: Seconds that a call may take, above 0.
        name: The task, for messages.
        close_timeout_s: Seconds that ``close`` may take, above 0; None for as many.

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
        self._is_over = False
        try:
            self._env: Env = self._call(make, "when it is made")
        except BaseException:
            self._end()
            raise

    @property
    def spec(self) -> EnvSpec:
        """See ``Env.spec``."""
        return self._env.spec

    @property
    def num_envs(self) -> int:
        """See ``Env.num_envs``."""
        return self._env.num_envs

    def reset(self) -> Arrays:
        """See ``Env.reset``.

        Raises:
            RunError: The call hangs.
        """
        return self._call(self._env.reset, "in reset")

    def step(self, actions: NDArray[Any]) -> Step:
        """See ``Env.step``.

        Raises:
            RunError: Also where the step hangs.
        """
        return self._call(lambda: self._env.step(actions), "in step")

    def observed(self, observation: Any) -> Arrays:
        """See ``Env.observed``."""
        return self._env.observed(observation)

    def own_action(self, action: NDArray[Any]) -> Any:
        """See ``Env.own_action``."""
        return self._env.own_action(action)

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
            self._end()  # an environment that hangs cannot be closed either
            raise RunError(
                f"environment ({self._name}) hangs {where}, for "
                f"{self._deadline.timeout_s:g} s; correct it"
            ) from None

    def _end(self) -> None:
        self._is_over = True
        self._deadline.__exit__()


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
