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
        return self.drawn()

    def step(self, action: Any) -> Answer:
        is_open = bool(self._mask[int(action)])
        reward = float(int(action) == self._right)
        self._left -= 1
        observation, info = self.drawn()
        return observation, reward, not is_open or self._left == 0, False, info

    def drawn(self) -> Reset:
        doors = np.sort(self.np_random.choice(self.num_doors, 2, replace=False))
        which = int(self.np_random.integers(2))
        self._right = int(doors[which])
        self._mask = np.zeros(self.num_doors, np.int8)
        self._mask[doors] = 1
        observation = np.eye(2, dtype=np.float32)[which]
        return observation, {"action_mask": self._mask}


class BlindDoors(Doors):
    """``Doors`` without a mask."""

    def drawn(self) -> Reset:
        observation, _ = super().drawn()
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

    def drawn(self) -> Reset:
        observation, info = super().drawn()
        return {"observation": observation, **info}, {}


class StrictDoors(DictDoors):
    """Doors 2 and 5 are always open; raises if another one is chosen."""

    open_choices = (2, 5)

    def step(self, action: Any) -> Answer:
        assert action in self.open_choices
        return super().step(action)

    def drawn(self) -> Reset:
        observation, info = super().drawn()
        self._mask[:] = 0
        self._mask[list(self.open_choices)] = 1
        return observation, info


class ManyStrictDoors(StrictDoors):
    """So many doors that the store packs the masks."""

    num_doors = 70


class SeenStrictDoors(StrictDoors):
    """The observation is an image, which networks may stack."""

    def __init__(self) -> None:
        super().__init__()
        image = spaces.Box(0, 255, (4, 4, 1), np.uint8)
        self.observation_space = spaces.Dict(
            {**self.observation_space.spaces, "observation": image}
        )

    def drawn(self) -> Reset:
        observation, info = super().drawn()
        image = self.np_random.integers(256, size=(4, 4, 1), dtype=np.uint8)
        return {**observation, "observation": image}, info


class PairsOfStrictDoors(StrictDoors):
    """An action also opens one of three more doors, of which the last one is open."""

    num_more = 3
    open_choices = (2, 5, 10)

    def __init__(self) -> None:
        super().__init__()
        counts = [self.num_doors, self.num_more]
        self.action_space = spaces.MultiDiscrete(counts)
        self.observation_space = spaces.Dict(
            {
                **self.observation_space.spaces,
                "action_mask": spaces.Box(0, 1, (sum(counts),), np.int8),
            }
        )

    def step(self, action: Any) -> Answer:
        first, second = action
        assert second == self.num_more - 1
        return super().step(first)

    def drawn(self) -> Reset:
        observation, _ = Doors.drawn(self)
        self._mask = np.zeros(self.num_doors + self.num_more, np.int8)
        self._mask[list(self.open_choices)] = 1
        return {"observation": observation, "action_mask": self._mask}, {}
