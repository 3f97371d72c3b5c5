"""The interface of an environment: many copies stepped together.

Every adapter keeps this convention of time::

    env.reset()                 -> o_0
    env.step(a_0)               -> o_1, r_1      o_1 is the state that a_0 reached
    ...
    env.step(a_k)               -> o_k+1, r_k+1, terminated or truncated
                                                 o_k+1 is the episode's final state
    env.step(anything)          -> o_0 of the next episode, reward 0, is_reset

So the final observation of an episode is never lost or replaced by the next episode's
first one, and the row that leads from an episode to the next is marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.tensors import TensorSpec

__all__ = [
    "MOST_BOUND",
    "ActionSpec",
    "Arrays",
    "Env",
    "EnvSpec",
    "GroupEnv",
    "Scale",
    "Step",
]

MOST_BOUND = 1e8
"""Greater bounds, of observations or half the distance between those of an action, mean
none: environments write 1e9, 1e10 or the most of a dtype for "any number"."""

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""``[N, ...]`` each, by name."""


class Scale(NamedTuple):
    """The scale of an action's K real numbers: an action is ``middle + half * unit``.

    ``ActionSpec.scale`` has the bounds at -1 and 1, the scale of policies
    (``PolicyAgent.scale_of``) has some of them at -2 and 2.
    """

    middle: tuple[float, ...]
    """Where 0 lies, for each number."""
    half: tuple[float, ...]
    """How far 1 lies from 0, for each number, above 0."""

    def to_unit(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Returns actions ``[N, K]`` on this scale."""
        units: NDArray[np.float64] = (actions - np.array(self.middle)) / self.half
        return units

    def from_unit(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the actions ``[N, K]`` that numbers on this scale stand for."""
        actions: NDArray[np.float64] = np.array(self.middle) + self.half * units
        return actions


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """An action space: discrete choices, or real numbers between bounds."""

    shape: tuple[int, ...] = ()
    """Shape of one action: () for one choice, ``(K,)`` for K choices or K numbers."""
    num_choices: tuple[int, ...] = ()
    """Choices of each part, counted from 0; empty where actions are real numbers."""
    low: tuple[float, ...] = ()
    """Lower bound of each number, perhaps infinite; empty for choices."""
    high: tuple[float, ...] = ()
    """Upper bound of each number, perhaps infinite; empty for choices."""

    def __post_init__(self) -> None:
        """Checks the fields against each other.

        Raises:
            UsageError: The actions are neither choices nor bounded numbers.
        """
        fields = ("num_choices",) if self.is_discrete else ("low", "high")
        check(
            len(self.shape) == 1 or (self.shape == () and self.is_discrete),
            "shape",
            self.shape,
            "must be (K,), or () for one choice; flatten the actions",
        )
        length = self.shape[0] if self.shape else 1
        check(length >= 1, "shape", self.shape, "must have a part; give it one")
        for name in ("num_choices", "low", "high"):
            value = getattr(self, name)
            count = length if name in fields else 0
            check(
                len(value) == count,
                name,
                value,
                f"must have {count} entries, one a part of a choice or of a number; "
                f"correct the environment",
            )
        check(
            all(choices >= 1 for choices in self.num_choices),
            "num_choices",
            self.num_choices,
            "must be at least 1 each; correct the environment",
        )
        check(
            all(low <= high for low, high in zip(self.low, self.high, strict=True)),
            "low",
            self.low,
            f"must be at most high ({self.high}); correct the environment",
        )

    @property
    def is_discrete(self) -> bool:
        """Whether actions are choices."""
        return bool(self.num_choices)

    @cached_property
    def is_bounded(self) -> tuple[bool, ...]:
        """Whether each real number has two bounds; see ``MOST_BOUND``."""
        widths = np.subtract(self.high, self.low, dtype=np.float64)
        return tuple((widths / 2 <= MOST_BOUND).tolist())

    @cached_property
    def scale(self) -> Scale:
        """The middle of each real number's bounds, and half the distance between them.

        0 and 1 for a number without bounds. The half is 1 where both bounds are equal.
        """
        low, high = np.array(self.low), np.array(self.high)
        with np.errstate(invalid="ignore"):  # of infinite bounds
            middle = np.where(self.is_bounded, (low + high) / 2, 0.0)
            half = np.where(self.is_bounded, (high - low) / 2, 1.0)
        half = np.where(half > 0, half, 1.0)
        return Scale(tuple(middle.tolist()), tuple(half.tolist()))

    @property
    def tensor(self) -> TensorSpec:
        """One action as an array: int64 choices or float32 numbers."""
        dtype = "int64" if self.is_discrete else "float32"
        return TensorSpec(dtype=dtype, shape=self.shape)


@dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """The properties of an environment that are known before it runs."""

    name: str
    """The task, as in ``tengen train``."""
    observations: dict[str, TensorSpec]
    """The tensors of one observation by name: ``observation`` alone, or
    ``observation/KEY`` for each entry of a nested observation."""
    actions: ActionSpec
    """The action space."""
    max_episode_steps: int | None
    """Steps after which an episode is truncated; None where there is no limit."""
    reward_threshold: float | None
    """Mean return over 100 episodes that counts as solved; None where unknown."""
    protocol: str = ""
    """Name of the protocol by which it is played and scored, such as ``v5``; empty
    where there is only one way."""
    reward_bound: float | None = None
    """Absolute value that rewards are clipped to for learning; returns that are
    reported are not clipped. None for no clipping."""
    frames_per_step: int = 1
    """Frames of the simulator that published figures count for a step."""
    is_hard: bool = False
    """Whether published agents use a deep residual network for its pictures."""
    is_partial: bool = False
    """Whether observations often lack what an agent must remember. Published agents
    then have a memory, and their last action and reward are inputs."""

    pixel_scales: dict[str, float] = field(default_factory=dict)
    """What networks divide the pixels of an image that is no bytes by, by the image's
    name: its greatest bound up to ``MOST_BOUND``, where that is above 1; other images
    are missing."""

    has_large_vectors: bool = False
    """Whether numbers that are no image have a bound from 30 to ``MOST_BOUND``."""

    def learned(self, reward: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns rewards ``[N]`` clipped for learning and for a network's inputs."""
        if self.reward_bound is None:
            return reward
        clipped: NDArray[np.float32] = reward.clip(
            -self.reward_bound, self.reward_bound
        )
        return clipped


class Step(NamedTuple):
    """The results of one step of N copies; the caller may keep the arrays."""

    observation: Arrays
    """The observations reached, by the names of the spec's ``observations``."""
    reward: NDArray[np.float32]
    """``[N]`` float32, 0 where the step was a reset."""
    terminated: NDArray[np.bool_]
    """``[N]`` bool, the task itself ended: nothing follows the state reached."""
    truncated: NDArray[np.bool_]
    """``[N]`` bool, a limit cut the episode short: more would have followed."""
    is_reset: NDArray[np.bool_]
    """``[N]`` bool, the copy's episode had ended and the step began the next one; the
    action was ignored. Such a step is no transition to learn from, and no frame."""
    life_lost: NDArray[np.bool_] | None = None
    """``[N]`` bool, learning treats the step as the end of an episode, though the
    episode goes on; None where that never happens."""


class Env(Protocol):
    """N copies of one environment stepped together, by one thread."""

    @property
    def spec(self) -> EnvSpec:
        """The environment's spec."""

    @property
    def num_envs(self) -> int:
        """Number N of copies."""

    def reset(self) -> Arrays:
        """Begins all episodes anew from the seed; returns the first observations.

        Every call returns the same observations, and the same actions after it give the
        same steps.
        """

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; resets a copy whose episode has ended instead. Blocks.

        Args:
            actions: ``[N, ...]``, by the spec's ``actions``.

        Raises:
            EnvError: The environment raised, or its results do not fit its spaces.
            RunError: An action is out of range.
        """

    def observed(self, observation: Any) -> Arrays:
        """Returns an observation from elsewhere as arrays, ``[1, ...]`` each.

        Args:
            observation: One copy's observation in the environment's own form, perhaps
                nested.

        Raises:
            UsageError: It is no observation of this environment.
        """

    def own_action(self, action: NDArray[Any]) -> Any:
        """Returns one action in the environment's own form.

        Args:
            action: An action by the spec's ``actions``.

        Raises:
            RunError: The action is out of range.
        """

    def close(self) -> None:
        """Releases the copies' resources. Safe to call twice.

        ``observed`` and ``own_action``, which need no copy, still work.
        """


@runtime_checkable
class GroupEnv(Protocol):
    """One of two groups of copies, which steps while its caller does something else.

    The first call is ``receive_first`` of the first group. Then the calls of both
    groups alternate: after receiving from a group, the caller sends it actions before
    it receives from the other group. The convention of time is that of ``Env``. Not
    thread-safe.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's spec."""

    @property
    def num_envs(self) -> int:
        """Copies N of the group."""

    def receive_first(self) -> Arrays:
        """Returns the first observations, ``[N, ...]`` each. Blocks."""

    def send(self, actions: NDArray[Any]) -> None:
        """Sends actions to every copy of the group; it steps after the other group.

        Args:
            actions: ``[N, ...]``, as for ``Env.step``.

        Raises:
            EnvError: The environment raised.
            RunError: An action is out of range, or the calls do not alternate.
        """

    def receive(self) -> Step:
        """Returns the step that was sent. Blocks.

        Raises:
            EnvError: The environment raised.
            RunError: The calls do not alternate.
        """

    def close(self) -> None:
        """Releases both groups' resources. Safe to call twice, and for both groups."""
