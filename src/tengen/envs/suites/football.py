"""Google Research Football in EnvPool: tasks such as ``football/academy_corner``.

An observation is ``[4, 72, 96]`` bool: planes of the own team, the other team, the ball
and the controlled player. Except for three easy tasks, the default network is deep and
stacks four observations, as in publications. The game has 19 actions, the reward is 1
or -1 for a goal, and a step is 10 steps of the game's physics.

Source: Kurach et al. 2020, "Google Research Football: A Novel Reinforcement Learning
Environment" (arXiv:1907.11180), sections 3.2 and 3.3.
Differs from the paper: planes are bools, because the store packs eight into a byte.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import RAISED, ActionRange, check_reward, copy_seeds, raised
from tengen.envs.env import ActionSpec, Arrays, EnvSpec, Step
from tengen.envs.filmed import draw_planes
from tengen.envs.gymnasium_env import make_guarded
from tengen.envs.suites.suite import ListedSuite
from tengen.errors import UsageError
from tengen.tensors import TensorSpec

_PREFIX = "football/"
_SCENARIOS = (
    "11_vs_11_competition",
    "11_vs_11_easy_stochastic",
    "11_vs_11_hard_stochastic",
    "11_vs_11_kaggle",
    "11_vs_11_stochastic",
    "1_vs_1_easy",
    "5_vs_5",
    "academy_3_vs_1_with_keeper",
    "academy_corner",
    "academy_counterattack_easy",
    "academy_counterattack_hard",
    "academy_empty_goal",
    "academy_empty_goal_close",
    "academy_pass_and_shoot_with_keeper",
    "academy_run_pass_and_shoot_with_keeper",
    "academy_run_to_score",
    "academy_run_to_score_with_keeper",
    "academy_single_goal_versus_lazy",
)
# Tasks in which the player only has to run to the goal: a three-layer network suffices.
_EASY = ("academy_empty_goal", "academy_empty_goal_close", "academy_run_to_score")
_IDS = "gfootball/"
_VERSION = "-v1"
_SHAPE = (4, 72, 96)
_CELL = 4
_FPS = 10.0


class FootballEnv:
    """Copies of a football scenario, stepped by a thread of EnvPool without the GIL.

    Args:
        name: The task, such as ``football/academy_corner``.
        num_envs: Number of copies, at least 1.
        seed: Seed of the copies, at least 0; see ``copy_seeds``.

    Attributes:
        spec: The scenario's spec.
        num_envs: Number N of copies.

    Raises:
        UsageError: EnvPool cannot create the scenario, or an argument is out of range.
    """

    def __init__(self, name: str, num_envs: int, seed: int) -> None:
        self._seeds = copy_seeds(seed, num_envs)
        short = name.removeprefix(_PREFIX)
        self._id = _IDS + short + _VERSION
        self._envs = make_guarded(self._made, name)
        self._is_begun = False
        self._is_over = np.zeros(num_envs, np.bool_)
        self.num_envs = num_envs
        self.spec = EnvSpec(
            name=name,
            observations={"observation": TensorSpec(dtype="bool", shape=_SHAPE)},
            actions=ActionSpec(num_choices=(int(self._envs.action_space.n),)),
            max_episode_steps=int(self._envs.spec.config.max_episode_steps),
            reward_threshold=None,
            is_hard=short not in _EASY,
        )
        self._range = ActionRange(self.spec.actions, name)

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``.

        Raises:
            EnvError: EnvPool raised.
        """
        try:
            states = self._begun()
        except RAISED as error:
            raise raised(self.spec.name, error, "a reset of all copies") from error
        self._is_begun = True
        self._is_over = np.zeros(self.num_envs, np.bool_)
        return {"observation": _planes(states)}

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: EnvPool raised.
            RunError: An action is out of range.
        """
        self._range.check(actions, self.num_envs)
        try:
            states, reward, terminated, truncated, _ = self._envs.step(
                actions.astype(np.int32)
            )
        except RAISED as error:
            raise raised(self.spec.name, error, "a step of all copies") from error
        reward = reward.astype(np.float32)
        check_reward(reward, self.spec.name)
        is_reset, self._is_over = self._is_over, terminated | truncated
        return Step(
            {"observation": _planes(states)}, reward, terminated, truncated, is_reset
        )

    def observed(self, observation: Any) -> Arrays:
        """Converts the game's minimap to arrays; see ``Env.observed``.

        Args:
            observation: ``[72, 96, 4]`` uint8, 0 or 255.

        Raises:
            UsageError: The observation has the wrong shape or dtype.
        """
        states = np.asarray(observation)
        if states.dtype != np.uint8 or states.shape != (*_SHAPE[1:], _SHAPE[0]):
            raise UsageError(
                f"observation ({states.dtype} {states.shape}) of {self.spec.name} must "
                "be uint8 (72, 96, 4); pass the result of the environment's reset or "
                "step"
            )
        return {"observation": _planes(states[None])}

    def own_action(self, action: NDArray[Any]) -> int:
        """Converts an action to an int; see ``Env.own_action``."""
        self._range.check(action[None], 1)
        return int(action)

    def close(self) -> None:
        """Releases EnvPool's environments; see ``Env.close``."""
        self._envs.close()

    def _begun(self) -> NDArray[np.uint8]:
        if self._is_begun:
            # EnvPool seeds environments only at creation, so create them again.
            self._envs.close()
            self._envs = self._made()
        states, _ = self._envs.reset()
        found: NDArray[np.uint8] = states
        return found

    def _made(self) -> Any:
        import envpool

        return envpool.make_gymnasium(
            self._id,
            num_envs=len(self._seeds),
            num_threads=1,
            seed=self._seeds[0],
            env_seed=self._seeds,
        )


def _planes(states: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Converts minimaps ``[N, 72, 96, 4]`` to planes ``[N, 4, 72, 96]``."""
    return np.ascontiguousarray(np.moveaxis(states > 0, -1, 1))


SUITE = ListedSuite(
    prefix=_PREFIX,
    package="envpool",
    listed=_SCENARIOS,
    make_copies=FootballEnv,
    observed="observation",
    draw=functools.partial(draw_planes, cell=_CELL),
    pictures_per_s=_FPS,
)
"""The suite of the tasks ``football/*``."""
