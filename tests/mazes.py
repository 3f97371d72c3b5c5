"""Mazes that are hard to explore, or that only an agent with memory can solve."""

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


class KeyRooms(gymnasium.Env):
    """The agent must take a key, open a door with it, and find a goal behind the door.

    A wall with a door divides the board of 5 x 5 cells into two rooms. The agent and
    the key are in the left room, the goal is in the right one; all places are random.
    Actions: up, right, down, left, take, open. To take anything but the key, or to open
    anything but the door with the key, ends the episode with 0. Reaching the goal gives
    1; any other step gives 0. An episode is truncated after 40 steps. A random agent
    fails in nearly all episodes.

    Observation ``[7]`` in [0, 1]: the places (row, column) of agent and key, the row of
    the door, and whether the agent has the key and has opened the door. The goal is
    invisible, so the agent must search the right room.
    """

    size, wall, limit = 5, 2, 40
    num_seen = 7
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    take, unlock = 4, 5

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 1.0, (self.num_seen,), np.float32)
        self.action_space = spaces.Discrete(6)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        rows = self.np_random.integers(self.size, size=4)
        columns = self.np_random.integers(self.wall, size=3)
        self.agent, self.key = (rows[0], columns[0]), (rows[1], columns[1])
        self.door = (rows[2], self.wall)
        self.goal = (rows[3], self.wall + 1 + columns[2])
        self.has_key = self.is_open = False
        self._steps = 0
        return self._seen(), {}

    def step(self, action):
        self._steps += 1
        is_wrong = False
        if action == self.take:
            is_wrong = self.has_key or self.agent != self.key
            self.has_key = True
        elif action == self.unlock:
            is_before = self.agent == (self.door[0], self.wall - 1)
            is_wrong = self.is_open or not (self.has_key and is_before)
            self.is_open = True
        else:
            by = self.moves[action]
            place = (self.agent[0] + by[0], self.agent[1] + by[1])
            is_inside = all(0 <= part < self.size for part in place)
            is_free = place[1] != self.wall or (self.is_open and place == self.door)
            if is_inside and is_free:
                self.agent = place
        is_there = self.agent == self.goal
        is_late = self._steps == self.limit
        return self._seen(), float(is_there), is_wrong or is_there, is_late, {}

    def _seen(self):
        places = [*self.agent, *self.key, self.door[0]]
        shown = np.array([*places, *self.goal], np.float32) / (self.size - 1)
        seen = [*shown[:5], self.has_key, self.is_open, *shown[5:]]
        return np.array(seen[: self.num_seen], np.float32)


class KnownKeyRooms(KeyRooms):
    """``KeyRooms`` in which the place of the goal is at the end of the observation."""

    num_seen = 9


def guide(seen):
    """Returns the best actions ``[N]`` in ``KnownKeyRooms``, given observations."""
    return np.array([_guided(row) for row in seen])


def _guided(row):
    places = (row * (KeyRooms.size - 1)).round().astype(int)
    agent, key, goal = (tuple(places[i : i + 2]) for i in (0, 2, 7))
    has_key, is_open = row[5] > 0, row[6] > 0
    before = (places[4], KeyRooms.wall - 1)
    if not has_key:
        return KeyRooms.take if agent == key else _towards(agent, key)
    if not is_open:
        return KeyRooms.unlock if agent == before else _towards(agent, before)
    if agent[1] <= KeyRooms.wall:
        return 1 if agent[0] == before[0] else _towards(agent, before)
    return _towards(agent, goal)


def _towards(place, wanted):
    """Returns the move that brings a place nearer, along the column first."""
    if place[0] != wanted[0]:
        return 2 if wanted[0] > place[0] else 0
    return 1 if wanted[1] > place[1] else 3
