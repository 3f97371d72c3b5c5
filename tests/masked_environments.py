"""Environments with action masks, each a task that tests name."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.environments import Answer, Reset


class Doors(gymnasium.Env):
    """Two of eight doors are open, and only ``info["action_mask"]`` shows which.

    The observation ``[2]`` says whether the first or the second open door is the right
    one, which gives 1. A closed door ends the episode, which otherwise has ten steps.
    An agent that ignores the mask passes 0.3 doors on average.
    """

    num_doors, num_steps = 8, 10

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(self.num_doors)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Reset:
        super().reset(seed=seed)
        self._left = self.num_steps
        return self._drawn()

    def step(self, action: Any) -> Answer:
        is_open = bool(self._mask[int(action)])
        reward = float(int(action) == self._right)
        self._left -= 1
        observation, info = self._drawn()
        return observation, reward, not is_open or self._left == 0, False, info

    def _drawn(self) -> Reset:
        doors = np.sort(self.np_random.choice(self.num_doors, 2, replace=False))
        which = int(self.np_random.integers(2))
        self._right = int(doors[which])
        self._mask = np.zeros(self.num_doors, np.int8)
        self._mask[doors] = 1
        observation = np.eye(2, dtype=np.float32)[which]
        return observation, {"action_mask": self._mask}


class BlindDoors(Doors):
    """``Doors`` without a mask."""

    def _drawn(self) -> Reset:
        observation, _ = super()._drawn()
        return observation, {}


class DictDoors(Doors):
    """``Doors`` with the mask in the observation, as PettingZoo has it."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            {
                "observation": self.observation_space,
                "action_mask": spaces.Box(0, 1, (self.num_doors,), np.int8),
            }
        )

    def _drawn(self) -> Reset:
        observation, info = super()._drawn()
        return {"observation": observation, **info}, {}
