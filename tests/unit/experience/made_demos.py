"""Demonstrations for tests: recorded in an environment by a policy of the test."""

from contextlib import closing

import numpy as np

from tengen import envs
from tengen.evaluation import Recorder
from tengen.experience import write_demonstrations
from tengen.games import allow


def write_episodes(folder, spec, episodes, source="a test"):
    def record(add):
        for episode in episodes:
            add(episode)

    return write_demonstrations(folder, spec, record, source=source)


def made_episodes(task, choose, num_episodes, *, num_envs=1, seed=0):
    """Returns a task's spec, and episodes whose actions ``choose(observation)`` gives.

    ``choose`` receives arrays ``[N, ...]`` by name and returns ``[N, ...]``.
    """
    allow(task)
    episodes = []
    with closing(envs.make(task, num_envs, seed)) as env:
        recorder = Recorder(env, num_episodes, episodes.append)
        seen = recorder.reset()
        while len(episodes) < num_episodes:
            seen = recorder.step(np.asarray(choose(seen))).observation
        return env.spec, episodes


def record_with(folder, task, choose, num_episodes, **settings):
    spec, episodes = made_episodes(task, choose, num_episodes, **settings)
    return write_episodes(folder, spec, episodes)


def episode_of(spec, num_steps, seed=0, **changes):
    """Returns an episode of random numbers that fits ``spec``."""
    rng = np.random.default_rng(seed)
    observation = {
        name: (rng.random((num_steps + 1, *tensor.shape)) * 5).astype(tensor.dtype)
        for name, tensor in spec.observations.items()
    }
    shape = (num_steps, *spec.actions.shape)
    action = rng.random(shape) * (spec.actions.num_choices or 1.0)
    last = np.arange(num_steps) == num_steps - 1
    return {
        **observation,
        "action": action.reshape(shape).astype(spec.actions.tensor.dtype),
        "reward": rng.random(num_steps, np.float32),
        "terminated": last,
        "truncated": np.zeros(num_steps, np.bool_),
        **changes,
    }
