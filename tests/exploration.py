"""Tasks whose only reward is far away, so that random actions never find it."""

import gymnasium
import numpy as np
from gymnasium import spaces


class DeepSea(gymnasium.Env):
    """A diver sinks one row per step, and the treasure is in the last column.

    Observation ``[size, size]`` float32, one at the diver's cell; it starts top left.
    Of the two actions one moves the diver a column to the right, which costs 0.01 /
    size, and the other to the left; which is which differs between cells. The episode
    ends in the last row. A move to the right from the last column gives 1 more, so
    the greatest return is 0.99, and random actions earn it once in 2^size episodes.

    Source: Osband et al. 2020, "Behaviour Suite for Reinforcement Learning", deep sea.

    Args:
        size: The number of rows and of columns.
    """

    def __init__(self, size=20):
        self.size = size
        self.observation_space = spaces.Box(0.0, 1.0, (size, size), np.float32)
        self.action_space = spaces.Discrete(2)
        self._right = np.random.default_rng(size).integers(2, size=(size, size))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._row = self._column = 0
        return self._seen(), {}

    def step(self, action):
        reward, last = 0.0, self.size - 1
        if action == self._right[self._row, self._column]:
            reward -= 0.01 / self.size
            if self._column == last:
                reward += 1.0
            self._column = min(self._column + 1, last)
        else:
            self._column = max(self._column - 1, 0)
        self._row += 1
        return self._seen(), reward, self._row == self.size, False, {}

    def _seen(self):
        board = np.zeros((self.size, self.size), np.float32)
        if self._row < self.size:
            board[self._row, self._column] = 1.0
        return board


class ShallowSea(DeepSea):
    """A deep sea of ten rows: random actions find the prize once in 1,024 episodes."""

    def __init__(self):
        super().__init__(10)


class Chain(gymnasium.Env):
    """A chain of states with a small reward at the left end and 1 at the right end.

    Observation ``[length]`` float32: ones up to the agent's state. Actions: left,
    right. An episode begins in the second state and is truncated after ``length + 9``
    steps. A step that ends in the first state gives 0.001 and one that ends in the last
    gives 1, so the greatest return is 12.

    Source: Osband et al. 2016, "Deep Exploration via Bootstrapped DQN", section 5.

    Args:
        length: The number of states.
    """

    def __init__(self, length=40):
        self.length = length
        self.observation_space = spaces.Box(0.0, 1.0, (length,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._state, self._steps = 1, 0
        return self._seen(), {}

    def step(self, action):
        self._steps += 1
        moved = self._state + (1 if action == 1 else -1)
        self._state = min(max(moved, 0), self.length - 1)
        reward = {0: 0.001, self.length - 1: 1.0}.get(self._state, 0.0)
        return self._seen(), reward, False, self._steps == self.length + 9, {}

    def _seen(self):
        return (np.arange(self.length) <= self._state).astype(np.float32)


class KeyMaze(gymnasium.Env):
    """A corridor with the key at one end, and a door and the goal at the other end.

    Observation ``[2, cells]`` float32: one at the agent's cell, in the second row once
    it has the key. Actions: up, right, down, left. The agent takes the key (K) by
    walking onto it, and passes the door (D) only with the key. The goal (G) ends the
    episode and gives 1. The shortest way takes 39 steps, 13 of them back from the key,
    and an episode is truncated after 80 steps. Random actions hardly ever find it.
    """

    rows = (
        "###############",
        "#.....K#G..D..#",
        "#.###########.#",
        "#......S......#",
        "###############",
    )
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    limit = 80

    def __init__(self):
        places = np.argwhere(np.array([list(row) for row in self.rows]) != "#")
        self._cells = {tuple(place): i for i, place in enumerate(places.tolist())}
        shape = 2, len(self._cells)
        self.observation_space = spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._steps, self._has_key = (3, 7), 0, False
        return self._seen(), {}

    def step(self, action):
        self._steps += 1
        row, column = self.moves[int(action)]
        place = (self._place[0] + row, self._place[1] + column)
        if place in self._cells and (self._has_key or self._sign(place) != "D"):
            self._place = place
        self._has_key |= self._sign(self._place) == "K"
        is_there = self._sign(self._place) == "G"
        is_late = not is_there and self._steps == self.limit
        return self._seen(), float(is_there), is_there, is_late, {}

    def _sign(self, place):
        return self.rows[place[0]][place[1]]

    def _seen(self):
        seen = np.zeros((2, len(self._cells)), np.float32)
        seen[int(self._has_key), self._cells[self._place]] = 1.0
        return seen
