"""The suite lbf/: an environment whose spaces are tuples has several agents."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from tengen import envs
from tengen.envs.copies import copy_seeds
from tengen.envs.suites.suite import LBF
from tengen.errors import UsageError
from tests.refusals import refused

PACKAGE = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Foraging(gymnasium.Env):
    """Each agent sees the time and the last actions, and earns its action."""

    metadata = {"render_modes": []}
    action_space = spaces.Tuple([spaces.Discrete(6)] * 2)
    observation_space = spaces.Tuple([spaces.Box(0, 9, (3,), np.float32)] * 2)

    def reset(self, seed=None, options=None):
        self.time, self.seed, self.field = 0, seed, np.ones((2, 2))
        return self.seen((0, 0)), {}

    def step(self, actions):
        self.time += 1
        is_over = self.time == 4
        if sum(actions) == 0:
            self.field[:] = 0
        return self.seen(actions), list(actions), is_over, False, {}

    def seen(self, actions):
        return tuple(np.array([self.time, *actions], np.float32) for _ in actions)


for name in ("1x1-v2", "1x1-v3", "2x2-v3"):
    gymnasium.register("Fake-" + name, Foraging)
'''


@pytest.fixture
def suite(tmp_path, monkeypatch):
    (tmp_path / "fake_lbf.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    return dataclasses.replace(
        LBF, prefix="fake/", package="fake_lbf", pattern=r"Fake-(.+)-v(\d+)"
    )


def test_all_agents_share_the_sum_of_the_rewards(suite):
    env = suite.make("fake/1x1", 2, 0)
    assert env.spec.agents == ("0", "1")
    assert env.spec.global_state.shape == (6,)
    env.reset()
    actions = np.array([1, 2, 0, 5])
    for time in range(1, 4):
        step = env.step(actions)
        assert step.reward.tolist() == [3, 3, 5, 5]
        assert step.observation["observation"][2].tolist() == [time, 0, 5]
        assert not step.truncated.any()
    last = env.step(np.array([1, 1, 0, 0]))
    # The package reports its time limit as a termination, but food is left.
    assert last.truncated.tolist() == [True, True, False, False]
    assert last.terminated.tolist() == [False, False, True, True]
    assert env.step(actions).is_reset.all()
    env.close()


def test_names_are_the_published_tasks(suite):
    assert "fake/8x8-2p-3f" in suite.names()
    assert dataclasses.replace(suite, package="no_such").names() == []
    with refused(UsageError, 'environment ("fake/3x3")', "fake/2x2"):
        suite.make("fake/3x3", 1, 0)
    with refused(UsageError, "no_such", "[lbf]"):
        dataclasses.replace(LBF, package="no_such").make("lbf/8x8-2p-3f", 1, 0)


def test_steps_are_those_of_the_package():
    pytest.importorskip("lbforaging")
    import gymnasium

    env = envs.make("lbf/8x8-2p-3f", 1, 3)
    observation = env.reset()
    own = gymnasium.make("Foraging-8x8-2p-3f-v3", disable_env_checker=True)
    # Where players were before a reset has an effect on it. tengen resets twice.
    for _ in range(2):
        wanted, _ = own.reset(seed=copy_seeds(3, 1)[0])
    random = np.random.default_rng(0)
    for _ in range(50):
        np.testing.assert_array_equal(observation["observation"], np.stack(wanted))
        actions = random.integers(6, size=2)
        step = env.step(actions)
        wanted, rewards, ended, was_cut, _ = own.step(actions.tolist())
        assert step.reward.tolist() == [np.float32(sum(rewards))] * 2
        is_left = own.unwrapped.field.any()
        assert step.terminated.tolist() == [ended and not is_left] * 2
        assert step.truncated.tolist() == [ended and is_left] * 2
        observation = step.observation
        if ended or was_cut:
            break
    assert ended or was_cut
    env.close()


def test_the_time_limit_truncates():
    pytest.importorskip("lbforaging")
    env = envs.make("lbf/8x8-2p-3f", 1, 3)
    env.reset()
    steps = [env.step(np.zeros(2, np.int64)) for _ in range(50)]
    assert [step.truncated.any() for step in steps] == [False] * 49 + [True]
    assert not any(step.terminated.any() for step in steps)
    env.close()
