"""Mazes that only an agent with memory can solve."""

import gymnasium
import numpy as np
from gymnasium import spaces


class TMaze(gymnasium.Env):
    """A sign at the start of a corridor tells the agent which way to turn at the end.

    Observation ``[3]`` float32: the sign 011 (north) or 110 (south) at the first step
    only, 101 in the corridor, 010 at the junction. Actions: north, east, south, west.
    A correct turn gives 4 and a wrong turn -0.1, and both end the episode; without
    memory the best mean return is 1.95. Any other step gives 0 if the agent advances
    east, else -0.1. An episode is truncated after ``5 * length`` steps.

    Source: Bakker 2001, "Reinforcement Learning with Long Short-Term Memory".
    Differs from the paper: the paper's steps west cost nothing, and it has no limit.
    """

    north, east, south, west = range(4)

    def __init__(self, length=20):
        self.length = length
        self.observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place = self._steps = 0
        self._goal = self.north if self.np_random.integers(2) else self.south
        sign = [0, 1, 1] if self._goal == self.north else [1, 1, 0]
        return np.array(sign, np.float32), {}

    def step(self, action):
        self._steps += 1
        before, reward = self._place, -0.1
        is_turn = before == self.length and action in (self.north, self.south)
        if is_turn:
            reward = 4.0 if action == self._goal else -0.1
        elif action == self.east:
            self._place = min(before + 1, self.length)
        elif action == self.west:
            self._place = max(before - 1, 0)
        if self._place > before:
            reward = 0.0
        seen = [0, 1, 0] if self._place == self.length else [1, 0, 1]
        is_late = not is_turn and self._steps == 5 * self.length
        return np.array(seen, np.float32), reward, is_turn, is_late, {}


class ShortTMaze(TMaze):
    """A T-maze of length 10: the agent must remember the sign for ten steps."""

    def __init__(self):
        super().__init__(10)
