"""A ``gymnasium.Env`` wrapper that checks every result, and generators of actions."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen.envs.check.seen import CannotGoOnError, Findings, ObservationCheck
from tengen.envs.copies import RAISED, UnfitError, as_end, as_reward, said, typed
from tengen.envs.env import ActionSpec
from tengen.envs.gymnasium_env import import_gymnasium, make_guarded
from tengen.envs.masks import ActionMasks
from tengen.envs.spaces import Actions, Observations
from tengen.envs.timely import Deadline
from tengen.errors import UsageError
from tengen.tensors import ACTION_MASK

# If there are at most this many discrete actions, each action is tried first.
_MAX_TRIED = 64


def own_actions(space: Any, seed: int) -> Iterator[Any]:
    """Yields an endless sequence of actions in the environment's native form.

    Args:
        space: A Gymnasium action space, which is not modified.
        seed: Seed of the random actions.
    """
    from gymnasium import spaces

    space = copy.deepcopy(space)
    space.seed(seed)
    if isinstance(space, spaces.Discrete) and space.n <= _MAX_TRIED:
        for choice in range(space.n):
            yield space.start + space.dtype.type(choice)
    elif isinstance(space, spaces.Box):
        for bound in (space.low, space.high):
            if np.isfinite(bound).all():
                yield bound.copy()
    while True:
        yield space.sample()


def agents_actions(
    spec: ActionSpec, num_steps: int, num_envs: int, seed: int
) -> NDArray[Any]:
    """Returns random actions ``[T, N, ...]`` in the form that agents output.

    Args:
        spec: The action space.
        num_steps: Number T of steps.
        num_envs: Number N of copies.
        seed: Seed of the random actions.
    """
    rng = np.random.default_rng(seed)
    shape = (num_steps, num_envs, *spec.shape)
    if spec.is_discrete:
        choices = np.reshape(spec.num_choices, spec.shape)
        return rng.integers(0, choices, size=shape, dtype=np.int64)
    drawn = rng.standard_normal(shape)
    low, high = np.array(spec.low), np.array(spec.high)
    bounded = np.isfinite(low) & np.isfinite(high)
    drawn[..., bounded] = rng.uniform(
        low[bounded], high[bounded], size=(*shape[:-1], int(bounded.sum()))
    )
    return np.clip(drawn, low, high).astype(np.float32)


# The keys of info under which autoreset wrappers store the final observation.
_FINAL_KEYS = ("final_obs", "final_observation", "final_info")
_FIVE = "(observation, reward, terminated, truncated, info)"


class Maker(NamedTuple):
    """Creates the environments of a check, which record their contract violations."""

    make_one: Callable[[], Any]
    """Returns a new ``gymnasium.Env``, or an environment of several agents."""
    name: str
    """The task's name."""
    findings: Findings
    """Receives the contract violations."""
    watch: Deadline
    """The time limit of every call into the environment."""

    def __call__(self) -> OneEnv:
        """Creates a checked environment.

        Raises:
            CannotGoOnError: The environment cannot be created, or its spaces are not
                supported.
        """
        return OneEnv(self)

    def made(self) -> Any:
        """Creates an environment, whose kind is not checked.

        Raises:
            CannotGoOnError: The environment cannot be created.
        """
        try:
            with self.watch.during("making it"):
                return make_guarded(self.make_one, self.name)
        except UsageError as error:
            self.findings.refused("make", error)
            raise CannotGoOnError from error


class Moved(NamedTuple):
    """The checked results of a step."""

    observation: Any
    """The observation as the environment returned it."""
    reward: float
    """The reward in float32, as agents receive it; inf if not finite in float32."""
    terminated: bool
    """Whether the episode reached a terminal state."""
    truncated: bool
    """Whether the episode was cut short."""

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended."""
        return self.terminated or self.truncated


class OneEnv:
    """Wraps a ``gymnasium.Env`` and records results that break the contract.

    Every method raises ``CannotGoOnError`` if a result cannot be used.

    Attributes:
        env: The ``gymnasium.Env``.
        observations: Converts its observations to arrays.
    """

    def __init__(self, maker: Maker) -> None:
        self._findings, self._watch = maker.findings, maker.watch
        self._name = maker.name
        self._episode = self._step = 0
        self.env = maker.made()
        self._check_kind()
        try:
            self._actions = Actions(self.env.action_space, maker.name)
            self.observations = Observations(
                self.env.observation_space, maker.name, self._actions.spec
            )
        except UsageError as error:
            self._findings.refused("spaces", error)
            self.close()
            raise CannotGoOnError from error
        self._seen = ObservationCheck(self.env.observation_space, self._findings)
        # The mask [1, A] of the current state; None if all choices are legal.
        self._mask: NDArray[np.bool_] | None = None
        self._has_mask = self.observations.has_mask

    @property
    def where(self) -> str:
        """Describes the current episode and step, for the messages of findings."""
        return f"episode {self._episode}, step {self._step}"

    def reset(self, seed: int | None = None) -> Any:
        """Begins an episode and returns its first observation."""
        self._episode += 1
        self._step = 0
        words = {} if seed is None else {"seed": seed}
        shown = "reset()" if seed is None else f"reset(seed={seed})"
        try:
            with self._watch.during(shown):
                answer = self.env.reset(**words)
        except RAISED as error:
            advice = "correct it"
            if isinstance(error, TypeError) and "keyword argument" in str(error):
                advice = "declare def reset(self, *, seed=None, options=None)"
            self._cannot(
                "reset.raises", shown, said(error), f"must not raise; {advice}"
            )
        if not isinstance(answer, tuple) or len(answer) != 2:
            self._cannot(
                "reset.pair",
                shown,
                f"returned {_kind(answer)}",
                "must return (observation, info); return observation, {}",
            )
        observation, info = answer
        self._check_info(info, shown)
        self._seen.check(observation, f"of {shown}")
        if self._episode == 1 and self._actions.spec.is_discrete:
            self._has_mask |= isinstance(info, dict) and ACTION_MASK in info
        self._take_mask(observation, info, is_terminal=False)
        return observation

    def step(self, action: Any) -> Moved:
        """Takes a step and returns the checked results.

        If the action mask excludes ``action``, takes a legal action instead.
        """
        self._step += 1
        if self._mask is not None:
            action = self._actions.legal(action, self._mask)
        try:
            with self._watch.during(f"step({action!r})"):
                answer = self.env.step(action)
        except RAISED as error:
            self._cannot(
                "step.raises",
                f"step({' '.join(repr(action).split())})",
                said(error),
                f"must not raise at {self.where}; accept every action of the space",
            )
        if not isinstance(answer, tuple) or len(answer) != 5:
            advice = f"return {_FIVE}"
            if isinstance(answer, tuple) and len(answer) == 4:
                advice += ", which replace done of old Gym"
            self._cannot(
                "step.five",
                "step",
                f"returned {_kind(answer)}",
                f"must return five values; {advice}",
            )
        observation, reward, terminated, truncated, info = answer
        self._check_info(info, "step")
        self._seen.check(observation, f"at {self.where}")
        moved = Moved(
            observation,
            self._reward(reward),
            self._end("terminated", terminated),
            self._end("truncated", truncated),
        )
        self._take_mask(observation, info, is_terminal=moved.terminated)
        return moved

    def close(self) -> None:
        """Closes the environment twice, because the contract requires idempotence."""
        for call in ("close()", "a second close()"):
            try:
                with self._watch.during(call):
                    self.env.close()
            except RAISED as error:
                self._findings.broken(
                    "close", call, said(error), "must not raise; correct it"
                )
                return

    def _take_mask(self, observation: Any, info: Any, *, is_terminal: bool) -> None:
        if not self._has_mask:
            return
        masks = ActionMasks(self._actions.spec, self._name)
        source = observation if self.observations.has_mask else info
        mask = masks.all_legal(1)
        try:
            masks.write(source, mask[0], 0, is_terminal=is_terminal)
        except UnfitError as error:
            self._cannot(
                "action_mask",
                "action mask",
                error.what,
                f"{error.rule} at {self.where}; correct it",
            )
        self._mask = mask

    def _check_kind(self) -> None:
        gymnasium = import_gymnasium()
        if not isinstance(self.env, gymnasium.Env):
            self._cannot(
                "make",
                "environment",
                type(self.env).__name__,
                "must be a gymnasium.Env; derive its class from it",
            )
        for space in ("observation_space", "action_space"):
            have = getattr(self.env, space, None)
            if not isinstance(have, gymnasium.Space):
                self._cannot(
                    "spaces",
                    space,
                    have,
                    "must be a gymnasium.Space; set it in __init__",
                )

    def _check_info(self, info: Any, call: str) -> None:
        if not isinstance(info, dict):
            self._findings.broken(
                "info", f"info of {call}", _kind(info), "must be a dict; return {}"
            )
            return
        for key in _FINAL_KEYS:
            if key in info:
                self._findings.broken(
                    "step.final",
                    f"info of {call}",
                    f"has {key}",
                    "must not report an episode that step itself has restarted; begin "
                    "episodes only in reset",
                )

    def _reward(self, reward: Any) -> float:
        is_number = isinstance(reward, numbers.Real | np.number) and not isinstance(
            reward, bool
        )
        if not is_number:
            self._findings.broken(
                "step.reward",
                "reward",
                _kind(reward),
                f"must be a number at {self.where}; return float(...)",
            )
        try:
            return float(np.float32(as_reward(reward, "")))
        except UnfitError as error:
            if not is_number:
                raise CannotGoOnError from None
            self._findings.broken(
                "step.reward",
                "reward",
                reward,
                f"{error.rule} at {self.where}; correct it",
            )
        return math.inf

    def _end(self, which: str, value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            self._findings.broken(
                f"step.{which}",
                which,
                _kind(value),
                f"must be a bool at {self.where}; return bool(...)",
            )
        try:
            return as_end(which, value, "")
        except UnfitError:
            raise CannotGoOnError from None

    def _cannot(self, rule: str, name: str, seen: object, must: str) -> Any:
        self._findings.broken(rule, name, seen, must)
        raise CannotGoOnError


def _kind(value: Any) -> str:
    """Describes a value by its type and text, or a tuple by its length."""
    if isinstance(value, tuple):
        return f"{len(value)} values"
    return typed(value)
