"""Gymnasium environments as ``Env``; the only module that imports gymnasium.

Source of the interface: Gymnasium 1.1 and later, ``gymnasium.vector``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.envs.env import EnvSpec, Step
from tengen.errors import RunError, UsageError, did_you_mean

__all__ = ["GymnasiumEnv", "gymnasium_names", "make_gymnasium"]


def _gymnasium() -> Any:
    """Returns the package, imported when an environment is first asked for.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import gymnasium
        import gymnasium.vector
    except ImportError as error:
        raise UsageError(
            f"gymnasium (missing) cannot be imported: {error}; "
            f"pip install 'gymnasium>=1.1'"
        ) from None
    if not hasattr(gymnasium.vector, "AutoresetMode"):
        raise UsageError(
            f"gymnasium ({gymnasium.__version__}) must be 1.1 or later; "
            f"pip install --upgrade gymnasium"
        )
    return gymnasium


def gymnasium_names() -> list[str]:
    """Returns the ids that Gymnasium knows, in order; empty when not installed."""
    try:
        return sorted(_gymnasium().registry)
    except UsageError:
        return []


def make_gymnasium(name: str, num_envs: int, seed: int) -> GymnasiumEnv:
    """Returns copies of the environment with a Gymnasium id.

    Args:
        name: The id, ``CartPole-v1``.
        num_envs: Copies, at least 1.
        seed: At least 0.

    Raises:
        UsageError: Gymnasium or a package that the environment needs is missing, the
            id is unknown, or a space is of a kind that this version does not have.
    """
    gymnasium = _gymnasium()
    if name not in gymnasium.registry:
        lister = "gymnasium.pprint_registry() lists the ids"
        advice = did_you_mean(name, gymnasium.registry, lister)
        raise UsageError(f'environment ("{name}") is not known to Gymnasium; {advice}')
    make_one = functools.partial(gymnasium.make, name, disable_env_checker=True)
    return GymnasiumEnv(make_one, num_envs, seed, name=name)


class GymnasiumEnv:
    """Copies of one Gymnasium environment in this process, stepped in turn.

    Gymnasium's next-step mode of reset is chosen by name, because the library's own
    default changed between versions: a step that ends an episode returns its final
    observation, and the next step resets.

    Attributes:
        spec: What is known of the environment.
        num_envs: Copies N.
    """

    def __init__(
        self,
        make_one: Callable[[], Any],
        num_envs: int,
        seed: int,
        *,
        name: str,
    ) -> None:
        """Makes the copies.

        Args:
            make_one: Returns a new ``gymnasium.Env``; called ``num_envs`` times.
            num_envs: Copies, at least 1.
            seed: At least 0. Copies have streams of their own, which no other seed
                shares.
            name: The task, for messages and the spec.

        Raises:
            UsageError: As ``make_gymnasium``.
        """
        check(num_envs >= 1, "num_envs", num_envs, "must be at least 1; raise it")
        check(seed >= 0, "seed", seed, "must be at least 0; choose another")
        gymnasium = _gymnasium()
        try:
            self._envs = gymnasium.vector.SyncVectorEnv(
                [make_one] * num_envs,
                autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
            )
        except gymnasium.error.DependencyNotInstalled as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f'environment ("{name}") needs a package that is missing: {reason}; '
                f"install it"
            ) from None
        except gymnasium.error.Error as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f'environment ("{name}") is refused by Gymnasium: {reason}; '
                f"choose another"
            ) from None
        self.num_envs = num_envs
        try:
            self.spec = _spec(gymnasium, self._envs, name)
        except UsageError:
            self._envs.close()
            raise
        # A Discrete space may begin elsewhere than at 0.
        self._first_action = int(self._envs.single_action_space.start)
        # Gymnasium's own rule, seed + i, would give seed 1 the copies of seed 0.
        streams = np.random.SeedSequence(seed).generate_state(num_envs)
        self._seeds = [int(stream) for stream in streams]
        self._is_over = np.zeros(num_envs, np.bool_)

    def reset(self) -> NDArray[Any]:
        """Begins all episodes anew from the seed; see ``Env.reset``."""
        observation, _ = self._envs.reset(seed=self._seeds)
        self._is_over = np.zeros(self.num_envs, np.bool_)
        return self._converted(observation)

    def step(self, actions: NDArray[np.int64]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            RunError: An observation or a reward is not finite.
        """
        is_reset = self._is_over
        observation, reward, terminated, truncated, _ = self._envs.step(
            actions + self._first_action
        )
        self._is_over = terminated | truncated
        if not np.isfinite(reward).all():
            raise RunError(
                f"reward ({reward}) of {self.spec.name} must be finite; "
                f"correct the environment"
            )
        return Step(
            self._converted(observation),
            reward.astype(np.float32),
            terminated,
            truncated,
            is_reset,
        )

    def close(self) -> None:
        """Releases what the copies hold; see ``Env.close``."""
        self._envs.close()

    def _converted(self, observation: Any) -> NDArray[Any]:
        array = np.asarray(observation, self.spec.observation_dtype)
        # One NaN, learned from, would end the run much later without a name.
        if array.dtype == np.float32 and not np.isfinite(array).all():
            raise RunError(
                f"observation ({self.spec.name}) must be finite; "
                f"correct the environment"
            )
        return array


def _spec(gymnasium: Any, envs: Any, name: str) -> EnvSpec:
    """Returns the spec, or raises UsageError for a space that is not handled."""
    actions, observations = envs.single_action_space, envs.single_observation_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise UsageError(
            f"action space ({actions}) of {name} must be discrete in this version; "
            f"choose an environment with a Discrete action space"
        )
    if not isinstance(observations, gymnasium.spaces.Box) or not observations.shape:
        raise UsageError(
            f"observation space ({observations}) of {name} must be an array of numbers "
            f"in this version; choose an environment with a Box observation space"
        )
    registered = envs.envs[0].spec
    return EnvSpec(
        name=name,
        observation_shape=tuple(int(length) for length in observations.shape),
        # Any other number is exact enough, or computed as well, in float32.
        observation_dtype="uint8" if observations.dtype == np.uint8 else "float32",
        num_actions=int(actions.n),
        max_episode_steps=registered.max_episode_steps if registered else None,
        reward_threshold=registered.reward_threshold if registered else None,
    )
