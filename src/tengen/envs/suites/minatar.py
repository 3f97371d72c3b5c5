"""The five games of MinAtar: tasks such as ``minatar/Breakout``.

An observation is ``[C, 10, 10]`` bool, not uint8, because networks divide uint8 images
by 255. Actions are the game's minimal set. As in MinAtar's defaults, actions are
sticky with probability 0.1 and the difficulty rises. Only Freeway has a time limit: it
terminates after 2500 steps.

The package has the GPL license. Users install it; tengen does not contain it.

Source: Young and Tian 2019, "MinAtar: An Atari-Inspired Testbed for Thorough and
Reproducible Reinforcement Learning Experiments".
Differs from the paper: its agents choose among all six actions, even if some actions
have no effect in the game.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.envs.copies import ActionRange, copy_seeds
from tengen.envs.env import ActionSpec, Arrays, EnvSpec, Step
from tengen.envs.filmed import draw_planes
from tengen.envs.suites.suite import ListedSuite
from tengen.errors import UsageError
from tengen.tensors import TensorSpec

_PREFIX = "minatar/"
_FILES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}
# Probability of a sticky action, the default of minatar.Environment.
_STICKY = 0.1
_CELL = 24
_FPS = 15.0


class MinAtarEnv:
    """Copies of one MinAtar game, stepped one after the other.

    Args:
        name: The task, such as ``minatar/Breakout``.
        num_envs: Number of copies, at least 1.
        seed: Seed of the copies, at least 0; see ``copy_seeds``.

    Attributes:
        spec: The game's spec.
        num_envs: Number N of copies.

    Raises:
        UsageError: ``seed`` or ``num_envs`` is out of range.
    """

    def __init__(self, name: str, num_envs: int, seed: int) -> None:
        self._seeds = copy_seeds(seed, num_envs)
        game = _load(name)
        self.num_envs = num_envs
        self._games = [game() for _ in range(num_envs)]
        self._randoms: list[Any] = []
        self._last_actions = [0] * num_envs
        self._actions: list[int] = self._games[0].minimal_action_set()
        self._is_over = np.zeros(num_envs, np.bool_)
        self._shape = tuple(self._games[0].state_shape())
        height, width, channels = self._shape
        image = TensorSpec(dtype="bool", shape=(channels, height, width))
        self.spec = EnvSpec(
            name=name,
            observations={"observation": image},
            actions=ActionSpec(num_choices=(len(self._actions),)),
            max_episode_steps=None,
            reward_threshold=None,
        )
        self._range = ActionRange(self.spec.actions, name)

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``."""
        self._randoms = [np.random.RandomState(seed) for seed in self._seeds]
        self._last_actions = [0] * self.num_envs
        self._is_over = np.zeros(self.num_envs, np.bool_)
        for game, random in zip(self._games, self._randoms, strict=True):
            game.random = random
            game.reset()
        return self._observation()

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            RunError: An action is out of range.
        """
        self._range.check(actions, self.num_envs)
        reward = np.zeros(self.num_envs, np.float32)
        terminated = np.zeros(self.num_envs, np.bool_)
        is_reset, last = self._is_over, self._last_actions
        for i, game in enumerate(self._games):
            if is_reset[i]:
                game.reset()
                continue
            # As in minatar.Environment, an action can repeat even across a reset.
            if self._randoms[i].rand() >= _STICKY:
                last[i] = self._actions[actions[i]]
            reward[i], terminated[i] = game.act(last[i])
        self._is_over = terminated
        truncated = np.zeros(self.num_envs, np.bool_)
        return Step(self._observation(), reward, terminated.copy(), truncated, is_reset)

    def observed(self, observation: Any) -> Arrays:
        """Converts a ``minatar.Environment.state`` result; see ``Env.observed``."""
        state = np.asarray(observation)
        if state.shape != self._shape:
            raise UsageError(
                f"observation ({state.shape}) of {self.spec.name} must have the shape "
                f"{self._shape}; pass the result of minatar.Environment.state"
            )
        planes = state.transpose(2, 0, 1)[None].astype(np.bool_)
        return {"observation": np.ascontiguousarray(planes)}

    def own_action(self, action: NDArray[Any]) -> int:
        """Converts an action to a MinAtar action; see ``Env.own_action``."""
        self._range.check(action[None], 1)
        return self._actions[int(action)]

    def close(self) -> None:
        """Releases the copies' games; see ``Env.close``."""
        self._games = []

    def _observation(self) -> Arrays:
        states = np.empty((self.num_envs, *self._shape), np.bool_)
        for i, game in enumerate(self._games):
            states[i] = game.state()
        return {"observation": np.ascontiguousarray(states.transpose(0, 3, 1, 2))}


def _load(name: str) -> type[Any]:
    """Returns the class ``Env`` of a game's module in MinAtar."""
    file = _FILES[name.removeprefix(_PREFIX)]
    package = importlib.util.find_spec("minatar")
    assert package is not None
    assert package.submodule_search_locations
    # Load only the game's file, which needs only numpy. MinAtar's __init__ would import
    # a GUI library, and log an error if the library is missing.
    path = Path(package.submodule_search_locations[0], "environments", f"{file}.py")
    found = importlib.util.spec_from_file_location(f"tengen_minatar_{file}", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    kind: type[Any] = module.Env
    return kind


SUITE = ListedSuite(
    prefix=_PREFIX,
    package="minatar",
    install=functools.partial(pip_install, "--no-deps", "minatar==1.0.15"),
    listed=tuple(_FILES),
    make_copies=MinAtarEnv,
    observed="observation",
    draw=functools.partial(draw_planes, cell=_CELL),
    pictures_per_s=_FPS,
)
"""The suite of the tasks ``minatar/*``."""
