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


class KeysAndDoors(gymnasium.Env):
    """A row of rooms; a door leads to the next room, and its key lies in this room.

    Observation ``[5, side, columns]`` bool: planes of walls, keys, doors, the goal and
    the agent, who carries the key that no plane shows. Actions: up, right, down, left.
    The agent takes a key, and opens the door of a room whose key it has, by walking
    onto it. The goal is in the last room; it ends the episode and gives 1. An episode
    is truncated after ``60 * num_rooms`` steps.

    Args:
        num_rooms: The number of rooms, at least 2.
    """

    side = 7
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))

    def __init__(self, num_rooms=3):
        self.num_rooms = num_rooms
        inner = self.side - 1
        shape = self.side, num_rooms * inner + 1
        self._walls = np.zeros(shape, np.bool_)
        self._walls[[0, -1]] = True
        self._walls[:, ::inner] = True
        rooms = range(num_rooms - 1)
        # Keys and doors alternate between the lower and the upper corners.
        self._all_doors = [(5 - 4 * (i % 2), (i + 1) * inner) for i in rooms]
        self._all_keys = [(1 + 4 * (i % 2), i * inner + 5) for i in rooms]
        self._goal = (5, (num_rooms - 1) * inner + 5)
        for door in self._all_doors:
            self._walls[door] = False
        self.observation_space = spaces.MultiBinary([5, *shape])
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._steps = (3, 3), 0
        self._keys, self._doors = list(self._all_keys), list(self._all_doors)
        return self._seen(), {}

    def step(self, action):
        self._steps += 1
        move = self.moves[int(action)]
        place = (self._place[0] + move[0], self._place[1] + move[1])
        if place in self._doors:
            has_key = self._all_keys[self._all_doors.index(place)] not in self._keys
            if has_key:
                self._doors.remove(place)
                self._place = place
        elif not self._walls[place]:
            self._place = place
        if self._place in self._keys:
            self._keys.remove(self._place)
        is_there = self._place == self._goal
        is_late = not is_there and self._steps == 60 * self.num_rooms
        return self._seen(), float(is_there), is_there, is_late, {}

    def _seen(self):
        planes = np.zeros((5, *self._walls.shape), np.int8)
        planes[0] = self._walls
        for plane, places in enumerate(
            (self._keys, self._doors, [self._goal], [self._place]), 1
        ):
            for place in places:
                planes[(plane, *place)] = 1
        return planes
