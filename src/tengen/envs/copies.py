"""Helpers of all environment adapters: seeds, and checks of actions and results."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import check
from tengen.envs.env import ActionSpec
from tengen.errors import EnvError, RunError
from tengen.games.raised import RAISED

__all__ = [
    "MAX_SEED",
    "MOST_FLOAT32",
    "MOST_WORDS",
    "RAISED",
    "ActionRange",
    "UnfitError",
    "as_end",
    "as_reward",
    "check_reward",
    "copy_seeds",
    "not_float32",
    "one_line",
    "raised",
    "said",
    "typed",
]

MAX_SEED = 2**31 - 1
"""The maximum seed of an environment; many simulators store the seed in a C int."""
MOST_WORDS = 500
"""The maximum number of characters of a library's message in an error message."""

MOST_FLOAT32 = float(np.finfo(np.float32).max)
"""The largest finite float32, the limit of rewards and of float observations."""

# An action may exceed a bound by this fraction, because float32 rounds.
_ROUNDING = 1e-6
_A_NUMBER = "must be a number"


def copy_seeds(seed: int, num_envs: int) -> list[int]:
    """Returns one distinct seed below 2^31 for each copy.

    Gymnasium gives copy i the seed ``seed + i``, so that environments with the seeds 0
    and 1 would have almost the same copies.

    Args:
        seed: The seed from which the copies' seeds are derived, at least 0.
        num_envs: Number of copies, at least 1.

    Raises:
        UsageError: ``seed`` or ``num_envs`` is out of range.
    """
    check(num_envs >= 1, "num_envs", num_envs, "must be at least 1; raise it")
    check(seed >= 0, "seed", seed, "must be at least 0; choose another")
    sequence = np.random.SeedSequence(seed)
    num_words = num_envs
    seeds: dict[int, None] = {}
    while len(seeds) < num_envs:
        words = sequence.generate_state(num_words) % (MAX_SEED + 1)
        seeds = dict.fromkeys(words.tolist())
        num_words += num_envs
    return list(seeds)[:num_envs]


class UnfitError(EnvError):
    """An environment returned an invalid value.

    Args:
        what: Name and text of the value, such as ``reward (nan)``.
        task: The environment's name.
        copy: Index of the copy, or a description with the agent; None if the value
            belongs to all copies.
        rule: The rule that the value breaks, such as ``must be a bool``.

    Attributes:
        what: The argument ``what``.
        copy: The argument ``copy``.
        rule: The argument ``rule``.
    """

    def __init__(self, what: str, task: str, copy: int | str | None, rule: str) -> None:
        where = task if copy is None else f"{task} (copy {copy})"
        super().__init__(f"{what} of {where} {rule}; correct the environment")
        self.what = what
        self.copy = copy
        self.rule = rule


def as_reward(value: Any, task: str, copy: int | None = None) -> float:
    """Returns the reward of one step as a float.

    Args:
        value: The value that the environment returned, a number or a one-element array.
        task: The environment's name, for error messages.
        copy: Index of the copy, for error messages.

    Raises:
        UnfitError: ``value`` is not a number, or not finite in float32.
    """
    number = value
    if type(value) is not float and type(value) is not np.float64:
        number = _number(value)
        if number is None:
            raise UnfitError(f"reward ({typed(value)})", task, copy, _A_NUMBER)
        try:
            number = float(number)
        except OverflowError:
            number = math.inf
    if -MOST_FLOAT32 <= number <= MOST_FLOAT32:  # False for NaN
        return float(number)
    what = f"reward ({one_line(value)})"
    raise UnfitError(what, task, copy, not_float32(value))


def as_end(name: str, value: Any, task: str, copy: int | None = None) -> bool:
    """Returns whether a step ended the episode.

    Args:
        name: ``terminated`` or ``truncated``.
        value: The value that the environment returned: a bool, 0 or 1, or an array of
            one of these.
        task: The environment's name, for error messages.
        copy: Index of the copy, for error messages.

    Raises:
        UnfitError: ``value`` is anything else, even if Python treats it as true.
    """
    if value is True or value is False:
        return bool(value)
    number = _number(value)
    if number is None or number not in (0, 1):
        raise UnfitError(f"{name} ({typed(value)})", task, copy, "must be a bool")
    return bool(number)


def not_float32(value: Any) -> str:
    """Returns the rule, for an error message, that a non-finite ``value`` breaks."""
    is_finite = value == value and value not in (math.inf, -math.inf)
    return f"must be at most {MOST_FLOAT32:.2g}" if is_finite else "must be finite"


def typed(value: Any) -> str:
    """Returns a value's type and text on one line, such as ``str 1.0`` for "1.0"."""
    return f"{type(value).__name__} {one_line(value)}"


def _number(value: Any) -> Any:
    """Returns ``value`` as a number: itself, or an array's only element; else None."""
    if isinstance(value, numbers.Real):
        return value
    if isinstance(value, list | tuple):
        return None
    try:
        array = np.asarray(value)
    except RAISED:
        return None
    return array.item() if array.dtype.kind in "biuf" and array.size == 1 else None


def check_reward(reward: NDArray[np.float32], task: str) -> None:
    """Checks the rewards ``[N]`` of one step.

    Raises:
        EnvError: A reward is infinite or NaN.
    """
    if not np.isfinite(reward).all():
        copy = int(np.argmin(np.isfinite(reward)))
        raise EnvError(
            f"reward ({reward[copy]}) of {task} (copy {copy}) must be finite; "
            f"correct the environment"
        )


def one_line(value: object, most: int = 100) -> str:
    """Returns a value's text on one line, cut to at most ``most`` characters.

    Control characters, which could change a terminal, become question marks.
    """
    try:
        text = " ".join(str(value).split())
    except RAISED:  # a foreign __str__ method, or an int with too many digits
        text = type(value).__name__
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def raised(name: str, error: BaseException, what: str) -> EnvError:
    """Returns an ``EnvError`` for an exception that an environment raised.

    Args:
        name: The environment's name.
        error: The exception.
        what: The call or copy that raised it, such as ``copy 3``.
    """
    return EnvError(
        f'environment ("{name}") must not raise, but {what} raised '
        f"{said(error)}; correct it"
    )


def said(error: BaseException) -> str:
    """Returns an exception's type and message on one line."""
    return f"{type(error).__name__}: {one_line(error, MOST_WORDS)}"


class ActionRange:
    """Checks that batches of actions fit an action space.

    Args:
        spec: The environment's action space.
        task: The environment's name, for error messages.
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
        """Checks a batch of actions.

        Args:
            actions: The batch, ``[N, ...]``.
            num_envs: Number N of copies.

        Raises:
            RunError: The shape or dtype is wrong, or an action is out of range.
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
            # Comparisons with NaN are false, so NaN is out of range.
            fits = (actions >= self._least) & (actions <= self._most)
            copy = num_envs if fits.all() else int(np.argwhere(~fits)[0, 0])
        if copy < num_envs:
            raise RunError(
                f"action ({one_line(actions[copy].tolist())}) of {self._task} (copy "
                f"{copy}) must be {one_line(self._low.tolist())} to "
                f"{one_line(self._high.tolist())}; correct the agent"
            )

    def clip(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Clips actions that passed ``check`` exactly to the action space's bounds."""
        clipped: NDArray[Any] = np.minimum(np.maximum(actions, self._low), self._high)
        return clipped


def _slack(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    size = np.where(np.isfinite(bounds), np.abs(bounds), 0.0)
    return _ROUNDING * np.maximum(size, 1.0)
