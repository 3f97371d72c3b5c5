"""MinAtar's games against the package's own way to play them."""

import logging
import sys

import numpy as np
import pytest

from tengen import envs
from tengen.envs.copies import copy_seeds
from tengen.envs.suites.minatar import SUITE as suite
from tengen.errors import RunError, UsageError
from tengen.recipes import make_config
from tengen.tensors import TensorSpec
from tests.refusals import refused

GAMES = {
    "Asterix": ("asterix", 4, 5),
    "Breakout": ("breakout", 4, 3),
    "Freeway": ("freeway", 7, 3),
    "Seaquest": ("seaquest", 10, 6),
    "SpaceInvaders": ("space_invaders", 6, 4),
}
needs_minatar = pytest.mark.skipif(
    not suite.names(), reason="needs pip install --no-deps minatar==1.0.15"
)


@needs_minatar
@pytest.mark.parametrize("name", GAMES)
def test_steps_are_those_of_the_package(name):
    logging.disable(logging.WARNING)  # its renderer may be missing
    try:
        from minatar import Environment
    finally:
        logging.disable(logging.NOTSET)
    game, num_planes, num_actions = GAMES[name]
    env = suite.make(f"minatar/{name}", 2, 11)
    assert env.spec == envs.EnvSpec(
        name=f"minatar/{name}",
        observations={
            "observation": TensorSpec(dtype="bool", shape=(num_planes, 10, 10))
        },
        actions=envs.ActionSpec(num_choices=(num_actions,)),
        max_episode_steps=None,
        reward_threshold=None,
    )
    theirs = [Environment(game) for _ in range(2)]
    for one, seed in zip(theirs, copy_seeds(11, 2), strict=True):
        one.seed(seed)
        one.reset()
    minimal = theirs[0].minimal_action_set()

    def states():
        return np.stack([one.state().transpose(2, 0, 1) for one in theirs])

    assert np.array_equal(env.reset()["observation"], states())
    rng = np.random.default_rng(1)
    is_over, num_resets, total = np.zeros(2, bool), 0, 0.0
    for _ in range(5200 if name == "Freeway" else 1500):
        actions = rng.integers(num_actions, size=2)
        step = env.step(actions)
        rewards, ends = np.zeros(2), np.zeros(2, bool)
        for i, one in enumerate(theirs):
            if is_over[i]:
                one.reset()
            else:
                rewards[i], ends[i] = one.act(minimal[actions[i]])
        assert np.array_equal(step.observation["observation"], states())
        assert step.observation["observation"].dtype == np.bool_
        assert np.array_equal(step.reward, rewards.astype(np.float32))
        assert np.array_equal(step.terminated, ends)
        assert np.array_equal(step.is_reset, is_over)
        assert not step.truncated.any()
        num_resets += int(is_over.sum())
        total += float(rewards.sum())
        is_over = ends
    assert num_resets >= 4
    assert total > 0 or name == "Freeway"


@needs_minatar
def test_steps_are_the_callers_to_keep():
    env = envs.make("minatar/Breakout", 1, 0)
    first = env.reset()["observation"]
    kept = first.copy()
    is_over, num_resets = False, 0
    for _ in range(60):
        step = env.step(np.array([0]))
        assert step.is_reset[0] == is_over
        is_over = bool(step.terminated[0])
        num_resets += int(step.is_reset[0])
        for array in (step.terminated, step.truncated, step.is_reset):
            array[:] = ~array
    assert np.array_equal(first, kept)
    assert num_resets > 1
    with refused(RunError, "action (3)"):
        env.step(np.array([3]))


@needs_minatar
def test_games_are_listed_and_load_without_a_renderer():
    assert [f"minatar/{game}" for game in GAMES] == suite.names()
    import subprocess

    code = (
        "import sys, tengen.envs as e; e.make('minatar/Seaquest', 1, 0).reset(); "
        "assert not {'minatar', 'matplotlib', 'seaborn'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b""


def test_a_task_of_a_suite_is_told_what_it_lacks():
    if not suite.names():
        with refused(UsageError, "minatar==1.0.15"):
            make_config("minatar/Breakout", None, None)
    with refused(UsageError, '"minatar/Breakout"'):
        make_config("minatar/Brakout", None, None)


@needs_minatar
def test_forms_of_the_package():
    env = suite.make("minatar/Breakout", 1, 0)
    env.close()
    state = np.random.default_rng(0).integers(2, size=(10, 10, 4)).astype(bool)
    (planes,) = env.observed(state)["observation"]
    assert np.array_equal(planes, state.transpose(2, 0, 1))
    assert planes.dtype == np.bool_
    # No-op, left and right, as minatar.Environment counts them.
    assert [env.own_action(np.array(i)) for i in range(3)] == [0, 1, 3]
    with refused(UsageError, "(10, 10, 4)"):
        env.observed(planes)
