"""Environments that a person can play, and the server of one recording."""

import argparse
from contextlib import closing, contextmanager
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from tengen.games import allow
from tests.unit.serve.served import running

LANE = f"{__name__}:Lane"


class Lane(gymnasium.Env):
    """Four cells in a row; an episode ends with reward 1 in the last one.

    Actions: left, which is illegal in the first cell, right, and stay. A seed decides
    the first cell, 0 or 1.
    """

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(3)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._cell = int(self.np_random.integers(2))
        return self._cell, self._info()

    def step(self, action):
        self._cell += (-1, 1, 0)[action]
        is_over = self._cell == 3
        return self._cell, float(is_over), is_over, False, self._info()

    def render(self):
        picture = np.zeros((2, 4, 3), np.uint8)
        picture[:, self._cell] = (200, 100, 50)
        return picture

    def get_keys_to_action(self):
        return {(): 2, (276,): 0, (1073741903, "d"): 1, "D": 1}

    def _info(self):
        return {"action_mask": np.array([self._cell > 0, True, True], np.int8)}


class Broken(Lane):
    """Describes its actions badly, and raises in its second step."""

    num_steps = 0

    def get_keys_to_action(self):
        return {("a",): 1, object(): 0}

    def get_action_meanings(self):
        while True:
            yield "\x1b[31m"

    def step(self, action):
        self.num_steps += 1
        if self.num_steps == 2:
            raise ValueError("the wheel came off")
        return super().step(action)


class Blind(Lane):
    """Cannot render the cell of number ``Blind.cell``, which a test sets."""

    cell = -1

    def render(self):
        if self._cell == self.cell:
            raise ValueError("the lamp\nbroke")
        return super().render()


@contextmanager
def playing(task=LANE, *, seed=0, num_episodes=2, keys=(), episodes=None):
    """Serves a recording; yields the server, the recording and its episodes."""
    from tengen.serve.app import Application, Pages
    from tengen.serve.record import Recording

    allow(task)
    episodes = [] if episodes is None else episodes
    args = argparse.Namespace(task=task, seed=seed, episodes=num_episodes)
    recording = Recording(args, list(keys), episodes.append)
    routes = [*recording.routes(), *Pages("/record").routes()]
    names = ("localhost", "127.0.0.1")
    with (
        closing(recording),
        running(Application(routes, lambda: None, names=names)) as site,
    ):
        yield site, recording, episodes


def change(site, what, state, choice=None):
    """Sends a change of ``state``, and returns the next state."""
    body = {"at": state["at"], "choice": choice}
    reply = site.ask(f"/api/recording/{what}", body)
    assert reply.status == 200, reply
    return reply.json


def play_lane(site, state):
    """Plays an episode of ``Lane`` to its end."""
    while not state["has_ended"]:
        state = change(site, "step", state, 1)
    return state
