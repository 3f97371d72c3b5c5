"""An environment with its own thread, and a deadline for each call.

It is used where an environment is stepped in the process that the user started. An
actor instead ends its own process, and the launcher starts the actor again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.errors import RunError

__all__ = ["TimelyEnv"]

_Result = TypeVar("_Result")


class TimelyEnv:
    """An ``Env`` that raises an error where a call hangs; used by one thread.

    A separate thread makes, steps and closes the environment. Where a call hangs, the
    thread is left behind and ends with the process. An environment that hangs in C code
    and keeps the interpreter's lock is not noticed.

    Args:
        make: Returns the environment.
        timeout_s: Seconds that a call may take, above 0.
        name: The task, for messages.

    Raises:
        UsageError: As ``make``.
        RunError: ``make`` hangs.
    """

    def __init__(self, make: Callable[[], Env], timeout_s: float, name: str) -> None:
        self._timeout_s = timeout_s
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Callable[[], Any]] = queue.SimpleQueue()
        self._is_over = False
        # A daemon, so that a thread that hangs does not keep the process from ending.
        thread = threading.Thread(target=self._serve, name="environment", daemon=True)
        thread.start()
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
        try:
            self._call(self._env.close, "in close")
        finally:
            self._end()

    def _call(self, work: Callable[[], _Result], where: str) -> _Result:
        self._work.put(work)
        try:
            result: _Result = self._done.get(timeout=self._timeout_s)()
        except queue.Empty:
            self._is_over = True  # an environment that hangs cannot be closed either
            raise RunError(
                f"environment ({self._name}) hangs {where}, for {self._timeout_s:g} s; "
                "correct it"
            ) from None
        return result

    def _end(self) -> None:
        self._is_over = True
        self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                result = work()
            except BaseException as error:
                self._done.put(_raiser(error))
            else:
                self._done.put(_returner(result))


def _raiser(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def _returner(result: Any) -> Callable[[], Any]:
    return lambda: result
