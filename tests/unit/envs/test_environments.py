"""The rules of the small environments that other tests learn and break on."""

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env

from tests import environments, mazes


def episode(env, act, seed=None):
    """Returns the observations of one episode and its return; ``act`` sees the last."""
    seen, total, is_over = [env.reset(seed=seed)[0]], 0.0, False
    while not is_over:
        state, reward, terminated, truncated, _ = env.step(act(seen[-1]))
        seen.append(state)
        total += reward
        is_over = terminated or truncated
    return seen, total


@pytest.mark.parametrize(
    "made",
    [
        environments.Catch,
        mazes.TMaze,
        environments.MaskedCartPole,
        environments.Nested,
        environments.MultiChoice,
    ],
)
def test_they_are_what_gymnasium_expects(made):
    check_env(made(), skip_render_check=True)


def test_catch():
    env = environments.Catch()

    def follow(board):
        row = board[:-1] if board[:-1].any() else board
        return int(1 + np.sign(row.any(axis=0).argmax() - board[-1].argmax()))

    columns = set()
    for seed in range(30):
        seen, total = episode(env, follow, seed)
        assert total == 1.0
        assert len(seen) == 10
        assert all(board.sum() == 2 for board in seen[:-1])
        columns.add(int(seen[0][0].argmax()))
    assert columns == set(range(5))
    for seed in range(10):
        seen, total = episode(env, lambda _: 0, seed)
        assert [int(board[-1].argmax()) for board in seen[:4]] == [2, 1, 0, 0]
        assert total == (1.0 if seen[0][0, 0] else -1.0)


@pytest.mark.parametrize("length", [1, 20])
def test_the_sign_of_a_t_maze_is_shown_once(length):
    env = mazes.TMaze(length)
    goals = set()
    for seed in range(20):
        sign = env.reset(seed=seed)[0].tolist()
        goal = {(0, 1, 1): env.north, (1, 1, 0): env.south}[tuple(map(int, sign))]
        goals.add(goal)
        for place in range(1, length + 1):
            state, reward, *ends, _ = env.step(env.east)
            assert state.tolist() == ([0, 1, 0] if place == length else [1, 0, 1])
            assert reward == 0
            assert ends == [False, False]
        state, reward, *ends, _ = env.step(goal if seed % 2 else 2 - goal)
        assert reward == (4.0 if seed % 2 else -0.1)
        assert ends == [True, False]
    assert goals == {env.north, env.south}


def test_detours_in_a_t_maze_cost():
    env = mazes.TMaze(2)
    env.reset(seed=0)
    moves = [env.north, env.west, env.east, env.west, env.east, env.east, env.east]
    steps = [env.step(move) for move in moves]
    assert [step[1] for step in steps] == [-0.1, -0.1, 0, -0.1, 0, 0, -0.1]
    # Back at the start the sign is not shown again.
    assert [step[0].tolist() for step in steps] == [
        *[[1, 0, 1]] * 5,
        [0, 1, 0],
        [0, 1, 0],
    ]
    steps = [env.step(env.west) for _ in range(3)]
    assert [step[2:4] for step in steps] == [(False, False)] * 2 + [(False, True)]


def test_cartpole_without_speeds():
    env, whole = environments.MaskedCartPole(), environments.CartPoleEnv()
    state, full = env.reset(seed=3)[0], whole.reset(seed=3)[0]
    assert env.observation_space.shape == state.shape == (2,)
    assert state.tolist() == full[[0, 2]].tolist()
    num_steps = 0
    ends = (False, False)
    while not any(ends):
        push = int(full[2] + 0.5 * full[3] + 0.02 * full[0] + 0.05 * full[1] > 0)
        state, _, *ends, _ = env.step(push)
        full = whole.step(push)[0]
        assert state.tolist() == full[[0, 2]].tolist()
        num_steps += 1
    assert (num_steps, ends) == (500, [False, True])
    env.reset()
    assert not env.step(0)[3]


def test_nested_needs_both_parts():
    def act(state):
        return int(state["image"][0, 0, -1] == 255) ^ int(state["vector"][0] < 0)

    def image_alone(state):
        return int(state["image"][0, 0, -1] == 255)

    env = environments.Nested()
    seen, total = episode(env, act, 0)
    assert (len(seen), total) == (11, 10)
    assert seen[0]["image"].shape == (1, 8, 8)
    assert seen[0]["image"].dtype == np.uint8
    assert {int(state["image"].sum()) for state in seen} == {32 * 255}
    totals = [episode(env, image_alone, seed)[1] for seed in range(100)]
    # A thousand fair coins: four standard errors are 0.64.
    assert np.mean(totals) == pytest.approx(5, abs=0.64)


def test_each_choice_counts():
    def shown(state):
        parts = np.split(state, np.cumsum(env.num_choices)[:-1])
        return np.array([part.argmax() for part in parts])

    env = environments.MultiChoice()
    assert episode(env, shown, 0)[1] == 10

    def two_of_three(state):
        return (shown(state) + np.array([0, 0, 1])) % env.num_choices

    assert episode(env, two_of_three, 0)[1] == pytest.approx(20 / 3)


def test_those_that_misbehave():
    raising = environments.Raising(at=12)
    assert episode(raising, lambda _: 0)[1] == 10
    with pytest.raises(ValueError, match="step 12 of"):
        episode(raising, lambda _: 0)
    for what in ("observation", "reward"):
        broken = environments.NotFinite(at=2, what=what)
        broken.reset()
        fine, bad = broken.step(0), broken.step(0)
        assert np.isfinite(fine[0]).all()
        assert np.isfinite(fine[1])
        assert np.isnan(bad[0]).any() == (what == "observation")
        assert np.isnan(bad[1]) == (what == "reward")
    slow = environments.Sleeping(seconds=0.0)
    assert episode(slow, lambda _: 0)[1] == 10


def test_one_that_hangs(monkeypatch):
    def wait(_):
        raise InterruptedError

    monkeypatch.setattr("threading.Event.wait", wait)
    env = environments.Hanging(at=2)
    env.reset()
    env.step(0)
    with pytest.raises(InterruptedError):
        env.step(0)
