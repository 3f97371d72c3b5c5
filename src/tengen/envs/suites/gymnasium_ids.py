"""Environments registered with Gymnasium, and a user's unregistered environments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.envs.copies import RAISED, check_reward, copy_seeds, raised
from tengen.envs.env import Arrays, Env, EnvSpec, Step
from tengen.envs.filmed import RENDER_MODE, FilmedEnv, RenderCamera, film_copies
from tengen.envs.gymnasium_env import GymnasiumEnv, import_gymnasium, make_guarded
from tengen.envs.parallel_env import copies_of
from tengen.envs.spaces import Actions, Observations
from tengen.envs.suites.suite import Suite
from tengen.errors import EnvError, UsageError, did_you_mean


def make_own(make_one: Callable[[], Any], name: str, num_envs: int, seed: int) -> Env:
    """Returns copies of an environment that is not registered with Gymnasium.

    Args:
        make_one: A subclass of ``gymnasium.Env``, a class with PettingZoo's parallel
            interface, or a function that returns an environment; called without
            arguments, once for each copy. To have a time limit, the environment itself
            must use ``gymnasium.wrappers.TimeLimit``.
        name: The task's name, for error messages and the spec.
        num_envs: Number of copies, at least 1.
        seed: Random seed, at least 0.

    Raises:
        UsageError: Gymnasium is missing, a copy cannot be created or is not a
            ``gymnasium.Env``, or a space is of an unsupported kind.
    """
    return copies_of(make_one, num_envs, seed, name=name)


def film_own(
    make_one: Callable[..., Any], name: str, num_envs: int, seed: int, num_filmed: int
) -> FilmedEnv:
    """Returns the same copies as ``make_own``, and films the first ``num_filmed``.

    Args:
        make_one: As for ``make_own``; receives ``render_mode`` if it has the parameter.
        name: See ``make_own``.
        num_envs: See ``make_own``.
        seed: See ``make_own``.
        num_filmed: See ``tengen.envs.make_filmed``.

    Raises:
        UsageError: As for ``make_own``, or the environment cannot render arrays.
    """
    try:
        inspect.signature(make_one).bind(render_mode=RENDER_MODE)
    except (TypeError, ValueError):
        plain = make_one

        def make_one(**_: Any) -> Any:
            return plain()

    return film_copies(make_one, num_envs, seed, num_filmed=num_filmed, name=name)


def _registered(name: str) -> Any:
    """Returns the spec that Gymnasium's registry has for an id.

    Raises:
        UsageError: The id is unknown.
    """
    registry = import_gymnasium().registry
    # Look the id up here, because Gymnasium would import a module named in the id.
    if name not in registry:
        lister = "gymnasium.pprint_registry() lists the ids"
        advice = did_you_mean(name, registry, lister)
        raise UsageError(f'environment ("{name}") is not known to Gymnasium; {advice}')
    return registry[name]


def _maker(name: str) -> Callable[..., Any]:
    return functools.partial(import_gymnasium().make, name, disable_env_checker=True)


# Fewer copies take less time if each is stepped by itself.
_LEAST_VECTORIZED = 6

_PROVEN = frozenset({"gymnasium.envs.classic_control.cartpole:CartPoleVectorEnv"})


def is_proven(registered: Any) -> bool:
    """Returns whether a vectorized implementation exists and is known to be correct.

    Args:
        registered: The environment's ``gymnasium.envs.registration.EnvSpec``.
    """
    # Reject additional wrappers: Gymnasium does not apply them to vectorized envs.
    return (
        registered.vector_entry_point in _PROVEN and not registered.additional_wrappers
    )


class GymnasiumVectorEnv:
    """A Gymnasium environment with its own vectorized implementation, such as CartPole.

    All copies share one random generator, which depends on the seed. A copy's next
    episode therefore depends on the episodes that other copies started before. The same
    seed, number of copies and actions give the same steps.

    Args:
        name: A Gymnasium id for which ``is_proven`` returns true.
        num_envs: Number of copies, at least 1.
        seed: Random seed, at least 0.
        render_mode: Gymnasium's render mode for ``render``; None for no rendering.

    Attributes:
        spec: The environment's spec.
        num_envs: Number N of copies.

    Raises:
        UsageError: An argument is out of range, or the environment cannot be created.
    """

    def __init__(
        self, name: str, num_envs: int, seed: int, render_mode: str | None = None
    ) -> None:
        (self._seed,) = copy_seeds(seed, 1)
        check(num_envs >= 1, "num_envs", num_envs, "must be at least 1; raise it")
        gymnasium = import_gymnasium()

        def make() -> Any:
            return gymnasium.make_vec(
                name,
                num_envs,
                vectorization_mode="vector_entry_point",
                render_mode=render_mode,
            )

        self._envs = make_guarded(make, name)
        self._actions = Actions(self._envs.single_action_space, name)
        self._observations = Observations(
            self._envs.single_observation_space, name, self._actions.spec
        )
        self._is_over = np.zeros(num_envs, np.bool_)
        self._drawn: Any = None
        self.num_envs = num_envs
        registered = gymnasium.registry[name]
        self.spec = EnvSpec(
            name=name,
            observations=self._observations.specs,
            pixel_scales=self._observations.pixel_scales,
            has_large_vectors=self._observations.has_large_vectors,
            actions=self._actions.spec,
            max_episode_steps=registered.max_episode_steps,
            reward_threshold=registered.reward_threshold,
        )

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``."""
        try:
            states, _ = self._envs.reset(seed=self._seed)
        except RAISED as error:
            raise self._raised(error) from error
        self._is_over = np.zeros(self.num_envs, np.bool_)
        return self._converted(states)

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: The environment raised an error, or returned a non-finite number.
            RunError: An action is out of range.
        """
        native = self._actions.to_gymnasium(actions, self.num_envs)
        try:
            states, reward, terminated, truncated, _ = self._envs.step(native)
        except RAISED as error:
            raise self._raised(error) from error
        reward = np.array(reward, np.float32)
        check_reward(reward, self.spec.name)
        is_reset, self._is_over = self._is_over, terminated | truncated
        return Step(self._converted(states), reward, terminated, truncated, is_reset)

    def observed(self, observation: Any) -> Arrays:
        """Converts a Gymnasium observation to arrays; see ``Env.observed``."""
        return self._observations.read(observation)

    def own_action(self, action: NDArray[Any]) -> Any:
        """Converts an action to a Gymnasium action; see ``Env.own_action``."""
        return self._actions.to_own(action)

    @property
    def metadata(self) -> dict[str, Any]:
        """The environment's Gymnasium metadata, such as its render modes."""
        return dict(self._envs.metadata)

    def render(self, copy: int) -> Any:
        """Returns a copy's frame. The first call after a step renders all copies."""
        if self._drawn is None:
            self._drawn = self._envs.render()
        return self._drawn[copy]

    def close(self) -> None:
        """Releases the copies' resources; see ``Env.close``."""
        try:
            self._envs.close()
        except RAISED as error:
            raise self._raised(error) from error

    def _converted(self, states: Any) -> Arrays:
        self._drawn = None
        arrays = self._observations.zeros(self.num_envs)
        self._observations.write(states, arrays)
        self._observations.check_finite(arrays)
        return arrays

    def _raised(self, error: BaseException) -> EnvError:
        return raised(self.spec.name, error, "a step of all copies")


def _is_vectorized(name: str, num_envs: int) -> bool:
    return is_proven(_registered(name)) and num_envs >= _LEAST_VECTORIZED


class _Ids(Suite):
    def known(self) -> Iterable[str]:
        try:
            return sorted(import_gymnasium().registry)
        except UsageError:
            return []

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        if _is_vectorized(name, num_envs):
            return GymnasiumVectorEnv(name, num_envs, seed)
        return GymnasiumEnv(_maker(name), num_envs, seed, name=name)

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        if _is_vectorized(name, num_envs):
            env = GymnasiumVectorEnv(name, num_envs, seed, RENDER_MODE)
            return FilmedEnv(env, RenderCamera(env.render, name, env.metadata))
        make_one = _maker(name)
        return film_copies(make_one, num_envs, seed, num_filmed=num_filmed, name=name)

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        _registered(name)
        return _maker(name)


SUITE = _Ids(prefix="", package="gymnasium")
"""The environments that are registered with Gymnasium."""
