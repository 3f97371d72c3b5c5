"""An environment with a deadline for each call.

It is used where an environment is stepped in the process that the user started. An
actor instead ends its own process, and the launcher starts the actor again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

from tengen.envs.deadline import Deadline, HangError
from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.errors import RunError

__all__ = ["TimelyEnv"]

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
