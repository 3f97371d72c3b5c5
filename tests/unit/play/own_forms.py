"""Environments with unusual forms of observations and actions.

Each class records the actions that it receives in ``taken``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """Random observations; the reward is the sum of the action. 3 to 6 steps."""

    taken: ClassVar[list[Any]] = []
    observation_space: Any = spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space: Any = spaces.Discrete(5, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._left = int(self.np_random.integers(3, 7))
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        type(self).taken.append(action)
        self._left -= 1
        reward = float(np.sum(action))
        return self.observation_space.sample(), reward, self._left == 0, False, {}


class ManyChoices(Walk):
    taken: ClassVar[list[Any]] = []
    action_space = spaces.MultiDiscrete([3, 4])


class Numbers(Walk):
    """Continuous actions with bounds that random weights exceed."""

    taken: ClassVar[list[Any]] = []
    action_space = spaces.Box(
        np.float32([[-0.5], [0.0]]), np.float32([[0.5], [2.0]]), dtype=np.float32
    )


class NestedWalk(Walk):
    taken: ClassVar[list[Any]] = []
    observation_space = spaces.Dict(
        {
            "card": spaces.Discrete(3, start=1),
            "inner": spaces.Tuple(
                (spaces.Box(-1, 1, (2, 2), np.float64), spaces.MultiBinary(2))
            ),
        }
    )
