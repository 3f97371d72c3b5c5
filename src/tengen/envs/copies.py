"""Helpers of all adapters: seeds of copies, checks of actions and rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import check
from tengen.envs.env import ActionSpec
from tengen.errors import EnvError, RunError

__all__ = [
    "MOST_WORDS",
    "RAISED",
    "ActionRange",
    "check_reward",
    "copy_seeds",
    "one_line",
    "raised",
    "said",
]

RAISED = (Exception, SystemExit)
"""Exceptions that are reported as errors of an environment's code, exits included."""
MOST_WORDS = 500
"""The most characters shown of an environment's own message."""

# Relative amount by which an action may exceed a bound, because float32 rounds.
_ROUNDING = 1e-6


def copy_seeds(seed: int, num_envs: int) -> list[int]:
    """Returns a seed for each copy, below 2^32, since some environments need that.

    By Gymnasium's own rule, seed + i, seed 1 would share copies with seed 0.

    Args:
        seed: The seed of all copies together, at least 0.
        num_envs: Copies, at least 1.

    Raises:
        UsageError: A number is out of its range.
    """
    check(num_envs >= 1, "num_envs", num_envs, "must be at least 1; raise it")
    check(seed >= 0, "seed", seed, "must be at least 0; choose another")
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(num_envs)]


def check_reward(reward: NDArray[np.float32], task: str) -> None:
    """Checks the rewards ``[N]`` of one step.

    Raises:
        EnvError: A reward is not finite.
    """
    if not np.isfinite(reward).all():
        copy = int(np.argmin(np.isfinite(reward)))
        raise EnvError(
            f"reward ({reward[copy]}) of {task} (copy {copy}) must be finite; "
            f"correct the environment"
        )


def one_line(value: object, most: int = 100) -> str:
    """Returns a value's text on one line of at most ``most`` characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= most else text[: most - 3] + "..."


def raised(name: str, error: BaseException, what: str) -> EnvError:
    """Returns the error of an environment that raised ``error`` while it ran.

    Args:
        name: The environment's name.
        error: The exception that it raised.
        what: The part of it that raised.
    """
    return EnvError(
        f'environment ("{name}") must not raise, but {what} raised '
        f"{said(error)}; correct it"
    )


def said(error: BaseException) -> str:
    """Returns an exception's type and message on one line."""
    return f"{type(error).__name__}: {one_line(error, MOST_WORDS)}"


class ActionRange:
    """Checks batches of actions against what an environment takes.

    Args:
        spec: The environment's action space.
        task: The environment's name, for messages.
    """

    def __init__(self, spec: ActionSpec, task: str) -> None:
        self._spec = spec
        self._task = task
        self._low: NDArray[Any] = np.zeros(spec.shape, np.int64)
        self._high: NDArray[Any]
        self._draws: _core.ChoiceDraws | None = None
        if spec.is_discrete:
            self._high = np.reshape(spec.num_choices, spec.shape) - 1
            self._draws = _core.ChoiceDraws(spec.num_choices)
            return
        self._low, self._high = np.array(spec.low), np.array(spec.high)
        self._least = self._low - _slack(self._low)
        self._most = self._high + _slack(self._high)

    def check(self, actions: NDArray[Any], num_envs: int) -> None:
        """Checks a batch.

        Args:
            actions: ``[N, ...]``.
            num_envs: Number N of copies.

        Raises:
            RunError: There are not N actions, or an action is out of range.
        """
        shape = (num_envs, *self._spec.shape)
        kinds = "iu" if self._spec.is_discrete else "f"
        if actions.shape != shape or actions.dtype.kind not in kinds:
            raise RunError(
                f"actions ({actions.dtype} {actions.shape}) of {self._task} must be "
                f"{self._spec.tensor.dtype} {shape}; correct the agent"
            )
        if self._draws is not None:
            copy = self._draws.first_out_of_range(actions.astype(np.int64, copy=False))
        else:
            # Written so that NaN, for which every comparison is false, is out of range.
            fits = (actions >= self._least) & (actions <= self._most)
            copy = num_envs if fits.all() else int(np.argwhere(~fits)[0, 0])
        if copy < num_envs:
            raise RunError(
                f"action ({one_line(actions[copy].tolist())}) of {self._task} (copy "
                f"{copy}) must be {one_line(self._low.tolist())} to "
                f"{one_line(self._high.tolist())}; correct the agent"
            )

    def clip(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Returns checked numbers, clipped exactly to their bounds."""
        clipped: NDArray[Any] = np.clip(actions, self._low, self._high)
        return clipped


def _slack(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.where(np.isfinite(bounds), np.abs(bounds), 0.0)
    return _ROUNDING * np.maximum(size, 1.0)
