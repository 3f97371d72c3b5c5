"""The interface of vectorized environments.

Every environment adapter follows this time convention::

    env.reset()                 -> o_0
    env.step(a_0)               -> o_1, r_1      o_1 is the state that a_0 reached
    ...
    env.step(a_k)               -> o_k+1, r_k+1, terminated or truncated
                                                 o_k+1 is the episode's final state
    env.step(anything)          -> o_0 of the next episode, reward 0, is_reset

So an episode's final observation is never replaced by the next episode's first one, and
``is_reset`` marks the step between two episodes.

In an environment with several agents, every copy has one row per agent, so that N rows
are N / num_agents copies: first the rows of the first copy, in the order of
``EnvSpec.agents``, then those of the next copy. An agent that was removed from the
episode, or is not added yet, has reset steps with zero observations. Its first
observation ends a reset step too. An episode ends for all agents of a copy together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, shown
from tengen.tensors import ACTION_MASK, TensorSpec

MOST_BOUND = 1e8
"""The largest bound that counts as finite, because environments declare 1e9, 1e10 or a
dtype's maximum to mean "any number". For actions, the limit applies to half the width
of the range."""

Arrays: TypeAlias = dict[str, NDArray[Any]]
"""Arrays of shape ``[N, ...]``, by name."""


class Scale(NamedTuple):
    """A linear map to an action's K components: ``action = middle + half * unit``.

    ``ActionSpec.scale`` maps the bounds to -1 and 1. The scale of policies
    (``PolicyAgent.scale_of``) maps some bounds to -2 and 2.
    """

    middle: tuple[float, ...]
    """The action's K components at unit 0."""
    half: tuple[float, ...]
    """The change of each component from unit 0 to unit 1, above 0."""

    def to_unit(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Converts actions ``[N, K]`` to units."""
        units: NDArray[np.float64] = (actions - np.array(self.middle)) / self.half
        return units


@dataclass(frozen=True, kw_only=True)
class ActionSpec:
    """A space of discrete actions, or of continuous actions with bounds."""

    shape: tuple[int, ...] = ()
    """Shape of one action: ``(K,)`` for K components, ``()`` for a single integer."""
    num_choices: tuple[int, ...] = ()
    """Number of choices of each action component; empty for continuous actions."""
    low: tuple[float, ...] = ()
    """Lower bound of each continuous component, may be -inf; empty if discrete."""
    high: tuple[float, ...] = ()
    """Upper bound of each continuous component, may be inf; empty if discrete."""

    def __post_init__(self) -> None:
        """Checks that the fields of the action space are consistent.

        Raises:
            UsageError: The fields contradict each other or are out of range.
        """
        fields = ("num_choices",) if self.is_discrete else ("low", "high")
        check(
            len(self.shape) == 1 or (self.shape == () and self.is_discrete),
            "shape",
            self.shape,
            "must be (K,), or () for a single choice; flatten the actions",
        )
        length = self.shape[0] if self.shape else 1
        check(length >= 1, "shape", self.shape, "must have an entry; add one")
        for name in ("num_choices", "low", "high"):
            value = getattr(self, name)
            count = length if name in fields else 0
            check(
                len(value) == count,
                name,
                shown(value),
                f"must have {count} entries, one per part of the action; correct the "
                "environment",
            )
        check(
            all(choices >= 1 for choices in self.num_choices),
            "num_choices",
            self.num_choices,
            "must all be at least 1; correct the environment",
        )
        check(
            all(low <= high for low, high in zip(self.low, self.high, strict=True)),
            "low",
            self.low,
            f"must be at most high ({self.high}); correct the environment",
        )

    @property
    def is_discrete(self) -> bool:
        """Whether actions are discrete."""
        return bool(self.num_choices)

    @cached_property
    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """``low`` and ``high`` as arrays ``[K]``; empty arrays for discrete actions."""
        return np.array(self.low, np.float32), np.array(self.high, np.float32)

    @cached_property
    def is_bounded(self) -> tuple[bool, ...]:
        """Whether each component of an action has finite bounds; see ``MOST_BOUND``."""
        widths = np.subtract(self.high, self.low, dtype=np.float64)
        return tuple((widths / 2 <= MOST_BOUND).tolist())

    @cached_property
    def scale(self) -> Scale:
        """The linear map from [-1, 1] to the bounds of each continuous component.

        Without bounds the middle is 0 and half is 1. If both bounds are equal, half is
        1.
        """
        low, high = np.array(self.low), np.array(self.high)
        with np.errstate(invalid="ignore"):  # inf - inf for infinite bounds
            middle = np.where(self.is_bounded, (low + high) / 2, 0.0)
            half = np.where(self.is_bounded, (high - low) / 2, 1.0)
        half = np.where(half > 0, half, 1.0)
        return Scale(tuple(middle.tolist()), tuple(half.tolist()))

    @property
    def tensor(self) -> TensorSpec:
        """The tensor spec of one action: int64 if discrete, float32 if continuous."""
        dtype = "int64" if self.is_discrete else "float32"
        return TensorSpec(dtype=dtype, shape=self.shape)


@dataclass(frozen=True, kw_only=True)
class EnvSpec:
    """The properties of an environment that are known before the first step."""

    name: str
    """The task's name, as for ``tengen train``."""
    observations: dict[str, TensorSpec]
    """The tensor specs of one observation by name: ``observation``, or
    ``observation/KEY`` for each entry of a nested observation."""
    actions: ActionSpec
    """The action space."""
    max_episode_steps: int | None
    """Number of steps after which an episode is truncated; None for no limit."""
    reward_threshold: float | None
    """Mean return over 100 episodes at which the task is solved; None if unknown."""
    win_return: float | None = None
    """The least return of an episode that the first team won; None if returns do not
    show who won."""
    protocol: str = ""
    """Name of the rules for training and scoring, such as ``v5`` for Atari; empty if
    the environment has only one set of rules."""
    reward_bound: float | None = None
    """Absolute value to which rewards are clipped for learning; None for no clipping.
    Reported returns are not clipped."""
    frames_per_step: int = 1
    """Number of simulator frames per step, as publications count them."""
    is_hard: bool = False
    """Whether published agents use a deep residual network for this task's images."""
    is_partial: bool = False
    """Whether the task is partially observable and needs memory. Published agents then
    use a recurrent network, with the last action and reward as inputs."""

    pixel_scales: dict[str, float] = field(default_factory=dict)
    """Divisors for the pixels of images that are not uint8, by observation name: the
    largest bound up to ``MOST_BOUND``. Images with bounds up to 1 are not listed."""

    has_large_vectors: bool = False
    """Whether a non-image observation has a bound above 30, up to ``MOST_BOUND``."""

    has_action_mask: bool = False
    """Whether some choices may be illegal. Then the observations also contain
    ``ACTION_MASK``, ``[N, A]`` bool, with at least one legal choice per component."""

    agents: tuple[str, ...] = ()
    """Names of the agents that act at the same time, in the order of a copy's rows.
    Empty if the environment has a single agent, whose actions are not in a dict."""
    teams: tuple[str, ...] = ()
    """The team of each agent, by name, as long as ``agents``."""
    global_state: TensorSpec | None = None
    """The tensor spec of the global state. Then the observations also contain
    ``GLOBAL_STATE`` with a row per copy, before ``hide_state``. None if there is none.
    """

    @property
    def num_agents(self) -> int:
        """Number of agents, and of rows per copy; at least 1."""
        return max(1, len(self.agents))

    @cached_property
    def team_members(self) -> dict[str, list[int]]:
        """The indices of each team's agents, in the order of the first agents."""
        members: dict[str, list[int]] = {}
        for agent, team in enumerate(self.teams):
            members.setdefault(team, []).append(agent)
        return members

    @property
    def observation_tensors(self) -> dict[str, TensorSpec]:
        """The tensor specs of an agent's observation and action mask, by name."""
        if not self.has_action_mask:
            return self.observations
        mask = TensorSpec(dtype="bool", shape=(sum(self.actions.num_choices),))
        return {**self.observations, ACTION_MASK: mask}

    def learned(self, reward: NDArray[np.float32]) -> NDArray[np.float32]:
        """Clips rewards ``[N]`` to ``reward_bound``, for losses and network inputs."""
        if self.reward_bound is None:
            return reward
        clipped: NDArray[np.float32] = reward.clip(
            -self.reward_bound, self.reward_bound
        )
        return clipped


class Step(NamedTuple):
    """The results of one step of N rows, one per copy, or one per agent of each copy.

    Later steps do not modify the arrays.
    """

    observation: Arrays
    """The observations after the step; see ``EnvSpec.observation_tensors``."""
    reward: NDArray[np.float32]
    """``[N]`` float32; 0 in reset steps."""
    terminated: NDArray[np.bool_]
    """``[N]`` bool; whether the episode reached a terminal state, or the agent has
    terminated, for example because it died."""
    truncated: NDArray[np.bool_]
    """``[N]`` bool; whether a limit, such as a time limit, cut the episode short."""
    is_reset: NDArray[np.bool_]
    """``[N]`` bool; whether the step ignored the action and began the next episode. A
    reset step is not a transition to learn from, and counts no frames."""
    life_lost: NDArray[np.bool_] | None = None
    """``[N]`` bool; whether a lost life ends the episode for learning, although the
    episode continues. None if the task's protocol ignores lost lives."""
    is_over: NDArray[np.bool_] | None = None
    """``[N / num_agents]`` bool; whether the episode of each copy has ended. None if
    the episode of a copy ends when all its rows have terminated or been truncated."""


class Env(Protocol):
    """N rows of an environment's copies; not thread-safe.

    N is the number of copies, times the number of agents if there are several.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's spec."""

    @property
    def num_envs(self) -> int:
        """Number N of rows."""

    def reset(self) -> Arrays:
        """Restarts all copies from the seed and returns their first observations.

        Every call returns the same observations, and the same actions after a call lead
        to the same steps.
        """

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy, but resets copies whose episode has ended. Blocks.

        Args:
            actions: Actions ``[N, ...]`` that fit ``EnvSpec.actions``.

        Raises:
            EnvError: The environment raised, or its results do not fit its spaces.
            RunError: An action is out of range.
        """

    def observed(self, observation: Any) -> Arrays:
        """Converts one native observation to arrays of shape ``[1, ...]``, by name.

        Args:
            observation: The observation of one copy, as the environment's own library
                returns it; may be nested. For several agents, a dict with the
                observations of the agents that are present; the arrays have a row for
                every agent.

        Raises:
            UsageError: ``observation`` does not fit this environment.
        """

    def own_action(self, action: NDArray[Any]) -> Any:
        """Converts one action to the environment's native form.

        Args:
            action: One action that fits ``EnvSpec.actions``.

        Raises:
            RunError: The action is out of range.
        """

    def close(self) -> None:
        """Releases the copies' resources. Idempotent.

        ``observed`` and ``own_action`` still work on a closed ``Env``.
        """


class EnvWrapper:
    """An ``Env`` that forwards all calls to another ``Env``; for subclasses.

    Args:
        env: The wrapped environment.
    """

    def __init__(self, env: Env) -> None:
        self._env = env

    @property
    def spec(self) -> EnvSpec:
        """See ``Env.spec``."""
        return self._env.spec

    @property
    def num_envs(self) -> int:
        """See ``Env.num_envs``."""
        return self._env.num_envs

    def reset(self) -> Arrays:
        """See ``Env.reset``."""
        return self._env.reset()

    def step(self, actions: NDArray[Any]) -> Step:
        """See ``Env.step``."""
        return self._env.step(actions)

    def observed(self, observation: Any) -> Arrays:
        """See ``Env.observed``."""
        return self._env.observed(observation)

    def own_action(self, action: NDArray[Any]) -> Any:
        """See ``Env.own_action``."""
        return self._env.own_action(action)

    def close(self) -> None:
        """See ``Env.close``."""
        self._env.close()


def hide_state(env: Any) -> None:
    """Lets an environment leave out ``GLOBAL_STATE``, if it has ``shows_state``."""
    while isinstance(env, EnvWrapper):
        env = env._env
    if hasattr(env, "shows_state"):
        env.shows_state = False


@runtime_checkable
class CompiledEnv(Protocol):
    """An ``Env`` that must be compiled. Compiling has no time limit."""

    def compile(self) -> None:
        """Compiles ``reset`` and ``step``, which otherwise compile in the first call.

        Raises:
            EnvError: The compiled code fails.
        """
        ...


@runtime_checkable
class GroupEnv(Protocol):
    """One of two groups of copies that step while the caller does other work.

    The caller first calls ``receive_first`` of the first group, and then alternates
    between the groups: after it has received from a group, it sends actions to that
    group before it receives from the other group. The time convention is that of
    ``Env``. Not thread-safe.
    """

    @property
    def spec(self) -> EnvSpec:
        """The environment's spec."""

    @property
    def num_envs(self) -> int:
        """Number N of copies in the group."""

    def receive_first(self) -> Arrays:
        """Returns the first observations, arrays of shape ``[N, ...]``. Blocks."""

    def send(self, actions: NDArray[Any]) -> None:
        """Sends actions to the group, which steps after the other group has stepped.

        Args:
            actions: ``[N, ...]``, as for ``Env.step``.

        Raises:
            EnvError: The environment raised.
            RunError: An action is out of range, or the calls do not alternate.
        """

    def receive(self) -> Step:
        """Returns the results of the step with the actions last sent. Blocks.

        Raises:
            EnvError: The environment raised.
            RunError: The calls do not alternate.
        """

    def close(self) -> None:
        """Releases the resources of both groups. Idempotent; may be called on both."""
