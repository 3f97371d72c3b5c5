from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.errors import RunError, UsageError

gymnasium = pytest.importorskip("gymnasium")

MakeOne = Callable[..., Any]


def actions_of(*values: int) -> Any:
    return np.array(values, np.int64)


def test_steps_have_no_off_by_one(make_counting_env: MakeOne) -> None:
    env = GymnasiumEnv(make_counting_env, 1, 0, name="counting")
    first = env.reset()
    assert first.shape == (1, 4)
    assert first.dtype == np.float32
    assert first[0, 1:].tolist() == [0, 0, -1]

    steps = [env.step(actions_of(action)) for action in (0, 1, 2, 0, 1, 2, 0, 1)]

    # [episode, step, action] of the states reached: 3 steps, reset, 2 steps, reset.
    assert [s.observation[0, 1:].tolist() for s in steps] == [
        [0, 1, 0],
        [0, 2, 1],
        [0, 3, 2],  # the final observation of episode 0
        [1, 0, -1],  # the next one's first; action 0 was ignored
        [1, 1, 1],
        [1, 2, 2],  # the final observation of episode 1
        [2, 0, -1],
        [2, 1, 1],
    ]
    assert [float(s.reward[0]) for s in steps] == [1, 2, 3, 0, 11, 12, 0, 21]
    assert [bool(s.terminated[0]) for s in steps] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert [bool(s.truncated[0]) for s in steps] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert [bool(s.is_reset[0]) for s in steps] == [0, 0, 0, 1, 0, 0, 1, 0]


def test_copies_end_apart(make_counting_env: MakeOne) -> None:
    lengths = iter([(3, 3), (2, 3)])
    env = GymnasiumEnv(lambda: make_counting_env(next(lengths)), 2, 0, name="counting")
    env.reset()
    steps = [env.step(actions_of(0, 1)) for _ in range(4)]
    assert [s.terminated.tolist() for s in steps] == [
        [False, False],
        [False, True],
        [True, False],
        [False, False],
    ]
    assert [s.is_reset.tolist() for s in steps] == [
        [False, False],
        [False, False],
        [False, True],
        [True, False],
    ]
    assert steps[2].observation[:, 1:3].tolist() == [[0, 3], [1, 0]]


def test_reset_begins_anew_and_seeds_are_reproducible(
    make_counting_env: MakeOne,
) -> None:
    def tags(env: GymnasiumEnv) -> Any:
        rows = [env.reset()]
        rows += [env.step(actions_of(0, 0, 0)).observation for _ in range(9)]
        return np.stack(rows)

    env = GymnasiumEnv(make_counting_env, 3, 7, name="counting")
    first = tags(env)
    assert np.array_equal(first, tags(env))
    again = GymnasiumEnv(make_counting_env, 3, 7, name="counting")
    assert np.array_equal(first, tags(again))
    other = GymnasiumEnv(make_counting_env, 3, 8, name="counting")
    # Gymnasium's seed + i would give copy 0 of seed 8 the stream of copy 1 of seed 7.
    assert not set(first[0, :, 0]) & set(tags(other)[0, :, 0])
    assert len(set(first[0, :, 0])) == 3


def test_a_reset_in_the_middle_of_an_episode_is_no_reset_step(
    make_counting_env: MakeOne,
) -> None:
    env = GymnasiumEnv(make_counting_env, 1, 0, name="counting")
    env.reset()
    for _ in range(3):
        step = env.step(actions_of(0))
    assert step.terminated[0]
    env.reset()
    step = env.step(actions_of(1))
    assert not step.is_reset[0]
    assert step.observation[0, 1:].tolist() == [0, 1, 1]


def test_actions_may_begin_elsewhere(make_counting_env: MakeOne) -> None:
    env = GymnasiumEnv(lambda: make_counting_env((3,), 5), 1, 0, name="counting")
    env.reset()
    assert env.spec.num_actions == 3
    assert env.step(actions_of(2)).observation[0, 3] == 7


def test_spec_of_an_environment_that_is_not_registered(
    make_counting_env: MakeOne,
) -> None:
    env = GymnasiumEnv(make_counting_env, 2, 0, name="counting")
    assert env.num_envs == 2
    assert env.spec.observation_shape == (4,)
    assert env.spec.observation_dtype == "float32"
    assert env.spec.max_episode_steps is None
    env.close()
    env.close()


def test_a_number_that_is_not_finite_is_refused(make_counting_env: MakeOne) -> None:
    def broken(field: int) -> GymnasiumEnv:
        def make() -> Any:
            one = make_counting_env()
            step = one.step

            def bad_step(action: Any) -> Any:
                answer = list(step(action))
                answer[field] = answer[field] * np.nan
                return tuple(answer)

            one.step = bad_step
            return one

        return GymnasiumEnv(make, 1, 0, name="counting")

    for field, word in ((0, "observation"), (1, "reward")):
        env = broken(field)
        env.reset()
        with pytest.raises(RunError, match=rf"^{word} .* must be finite; "):
            env.step(actions_of(0))


def test_arguments_are_checked(make_counting_env: MakeOne) -> None:
    with pytest.raises(UsageError, match=r"^num_envs \(0\) must be at least 1; "):
        GymnasiumEnv(make_counting_env, 0, 0, name="counting")
    with pytest.raises(UsageError, match=r"^seed \(-1\) must be at least 0; "):
        GymnasiumEnv(make_counting_env, 1, -1, name="counting")
