"""CartPole's vector form against copies of it that are stepped in turn."""

import copy
import functools

import numpy as np
import pytest

from tengen import envs
from tengen.envs.copies import copy_seeds
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.envs.suites.gymnasium_ids import GymnasiumVectorEnv, is_proven
from tengen.errors import RunError, UsageError
from tests.refusals import refused

gymnasium = pytest.importorskip("gymnasium")


def in_turn(name, num_envs):
    """Returns the copies together, and each alone."""
    each = []

    def make_one():
        each.append(gymnasium.make(name, disable_env_checker=True))
        return each[-1]

    return GymnasiumEnv(make_one, num_envs, 0, name=name), each


@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.parametrize("name", ["CartPole-v0", "CartPole-v1"])
def test_the_vector_form_steps_as_copies_in_turn_do(name):
    # Half of the copies balance until the limit, the others fall soon.
    num_envs = 8
    vector = GymnasiumVectorEnv(name, num_envs, 3)
    copies, each = in_turn(name, num_envs)
    assert vector.spec == copies.spec
    limit = vector.spec.max_episode_steps
    rng = np.random.default_rng(0)
    state = vector.reset()["observation"]
    copies.reset()

    def begin_alike(i):
        each[i].unwrapped.state = vector._envs.state[:, i].copy()

    for i in range(num_envs):
        begin_alike(i)
    num_ends = {"terminated": 0, "truncated": 0}
    for _ in range(2 * limit + 10):
        x, speed, angle, turn = state.T
        pushes = (angle + 0.5 * turn + 0.02 * x + 0.05 * speed > 0).astype(np.int64)
        pushes[::2] = rng.integers(2, size=num_envs // 2)
        step, expected = vector.step(pushes), copies.step(pushes)
        for i in np.flatnonzero(step.is_reset):
            begin_alike(i)
        live = ~step.is_reset
        state = step.observation["observation"]
        np.testing.assert_allclose(
            state[live], expected.observation["observation"][live], rtol=1e-5, atol=1e-6
        )
        # A new episode's first state is of its own, and in CartPole's range.
        assert (np.abs(state[step.is_reset]) <= 0.05).all()
        for column in ("reward", "terminated", "truncated", "is_reset"):
            ours, theirs = getattr(step, column), getattr(expected, column)
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs), column
        num_ends["terminated"] += int(step.terminated.sum())
        num_ends["truncated"] += int((step.truncated & ~step.terminated).sum())
    assert num_ends["terminated"] > 20
    assert num_ends["truncated"] >= num_envs / 2


def test_copies_in_turn_step_as_gymnasiums_own_do():
    num_envs = 5
    copies, _ = in_turn("CartPole-v1", num_envs)
    make_one = functools.partial(gymnasium.make, "CartPole-v1")
    library = gymnasium.vector.SyncVectorEnv(
        [make_one] * num_envs,
        autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP,
    )
    rng = np.random.default_rng(0)
    first, _ = library.reset(seed=copy_seeds(0, num_envs))
    assert np.array_equal(copies.reset()["observation"], first)
    is_over = np.zeros(num_envs, bool)
    num_resets = 0
    for _ in range(300):
        actions = rng.integers(2, size=num_envs)
        step, expected = copies.step(actions), library.step(actions)
        assert np.array_equal(step.observation["observation"], expected[0])
        assert np.array_equal(step.reward, expected[1])
        assert np.array_equal(step.terminated, expected[2])
        assert np.array_equal(step.truncated, expected[3])
        assert np.array_equal(step.is_reset, is_over)
        is_over = expected[2] | expected[3]
        num_resets += int(step.is_reset.sum())
    assert num_resets > 20


def test_the_vector_form_is_used_where_it_is_proven():
    assert isinstance(envs.make("CartPole-v1", 6, 0), GymnasiumVectorEnv)
    assert isinstance(envs.make("CartPole-v1", 5, 0), GymnasiumEnv)
    assert isinstance(envs.make("Acrobot-v1", 2, 0), GymnasiumEnv)
    others = [
        name
        for name, spec in gymnasium.registry.items()
        if spec.vector_entry_point is not None and not name.startswith("CartPole-")
    ]
    assert not any(is_proven(gymnasium.registry[name]) for name in others)
    # Wrappers that belong to an id would be lost.
    wrapped = copy.deepcopy(gymnasium.registry["CartPole-v1"])
    wrapped.additional_wrappers = (object(),)
    assert not is_proven(wrapped)


def test_seeds_share_no_copy_and_give_the_same_steps():
    def states(seed):
        env = envs.make("CartPole-v1", 6, seed)
        rows = [env.reset()["observation"]]
        for _ in range(60):
            step = env.step(np.ones(6, np.int64))
            rows.append(step.observation["observation"])
        again = env.reset()["observation"]
        assert np.array_equal(rows[0], again)
        return np.stack(rows)

    once = states(7)
    assert np.array_equal(once, states(7))
    firsts = {float(x) for seed in (7, 8) for x in states(seed)[0, :, 0]}
    assert len(firsts) == 12


def test_actions_are_checked_and_errors_are_told(monkeypatch):
    env = envs.make("CartPole-v1", 6, 0)
    env.reset()
    with refused(RunError, "action (2)"):
        env.step(np.array([0, 2, 0, 0, 0, 0]))

    def fail(_):
        raise ValueError("no")

    monkeypatch.setattr(env._envs, "step", fail)
    with refused(RunError, '("CartPole-v1")', "ValueError: no"):
        env.step(np.zeros(6, np.int64))
    env.close()
    env.close()
    with refused(UsageError, "num_envs (0)"):
        envs.make("CartPole-v1", 0, 0)
    with refused(UsageError, "seed (-1)"):
        envs.make("CartPole-v1", 1, -1)
