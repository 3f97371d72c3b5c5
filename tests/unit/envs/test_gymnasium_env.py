import sys
from fractions import Fraction

import numpy as np
import pytest

from tengen import envs
from tengen.envs import ActionSpec
from tengen.envs.copies import copy_seeds
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.errors import RunError, UsageError
from tengen.tensors import TensorSpec

pytest.importorskip("gymnasium")

import gymnasium

from tests.environments import MultiChoice, Nested, NotFinite, Raising
from tests.refusals import refused


def actions_of(*values):
    return np.array(values, np.int64)


def test_steps_have_no_off_by_one(make_counting_env):
    env = GymnasiumEnv(make_counting_env, 1, 0, name="counting")
    first = env.reset()["observation"]
    assert first.shape == (1, 4)
    assert first.dtype == np.float32
    assert first[0, 1:].tolist() == [0, 0, -1]

    steps = [env.step(actions_of(action)) for action in (0, 1, 2, 0, 1, 2, 0, 1)]

    # [episode, step, action] of the states reached: 3 steps, reset, 2 steps, reset.
    assert [s.observation["observation"][0, 1:].tolist() for s in steps] == [
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


def test_copies_end_apart(make_counting_env):
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
    assert steps[2].observation["observation"][:, 1:3].tolist() == [[0, 3], [1, 0]]


def test_reset_begins_anew_and_seeds_are_reproducible(make_counting_env):
    def tags(env):
        rows = [env.reset()["observation"]]
        rows += [
            env.step(actions_of(0, 0, 0)).observation["observation"] for _ in range(9)
        ]
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


def test_a_reset_in_the_middle_of_an_episode_is_no_reset_step(make_counting_env):
    env = GymnasiumEnv(make_counting_env, 1, 0, name="counting")
    env.reset()
    for _ in range(3):
        step = env.step(actions_of(0))
    assert step.terminated[0]
    env.reset()
    step = env.step(actions_of(1))
    assert not step.is_reset[0]
    assert step.observation["observation"][0, 1:].tolist() == [0, 1, 1]


def test_actions_may_begin_elsewhere(make_counting_env):
    env = GymnasiumEnv(lambda: make_counting_env((3,), 5), 1, 0, name="counting")
    env.reset()
    assert env.spec.actions == ActionSpec(num_choices=(3,))
    assert env.step(actions_of(2)).observation["observation"][0, 3] == 7


def test_spec_of_an_environment_that_is_not_registered(make_counting_env):
    env = GymnasiumEnv(make_counting_env, 2, 0, name="counting")
    assert env.num_envs == 2
    assert env.spec.observations == {"observation": TensorSpec(shape=(4,))}
    assert env.spec.max_episode_steps is None
    env.close()
    env.close()


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_a_number_that_is_not_finite_is_refused(what):
    steps = iter([5, 3])
    env = envs.make_own(lambda: NotFinite(next(steps), what), "broken", 2, 0)
    env.reset()
    env.step(actions_of(0, 0))
    env.step(actions_of(0, 0))
    with pytest.raises(RunError) as caught:
        env.step(actions_of(0, 0))
    assert str(caught.value) == (
        f"{what} (nan) of broken (copy 1) must be finite; correct the environment"
    )


def test_what_an_environment_raises_is_told():
    steps = iter([5, 3])
    env = envs.make_own(lambda: Raising(next(steps)), "broken", 2, 0)
    env.reset()
    env.step(actions_of(0, 0))
    env.step(actions_of(0, 0))
    with pytest.raises(RunError) as caught:
        env.step(actions_of(0, 0))
    assert str(caught.value) == (
        'environment ("broken") must not raise, but copy 1 raised ValueError: '
        "step 3 of this environment always fails; correct it"
    )
    assert isinstance(caught.value.__cause__, ValueError)


def step_with(make_counting_env, method, answer):
    """Resets and steps two copies whose method of that name is ``answer``."""

    def make():
        one = make_counting_env()
        setattr(one, method, answer)
        return one

    env = envs.make_own(make, "broken", 2, 0)
    env.reset()
    env.step(actions_of(0, 0))


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("reset", lambda **_: 1 / 0, "ZeroDivisionError: division by zero"),
        ("reset", lambda: None, "TypeError: "),
        ("step", lambda _: sys.exit("two\nlines"), "SystemExit: two lines; correct it"),
    ],
)
def test_methods_that_do_not_answer_as_they_should(
    make_counting_env, method, answer, words
):
    with refused(RunError, 'environment ("broken")', "copy 0", words) as caught:
        step_with(make_counting_env, method, answer)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        (
            "reset",
            lambda **_: np.zeros(4),
            ["(ndarray)", "2 values"],
        ),
        # Two numbers could be taken for an observation and an info.
        (
            "reset",
            lambda **_: np.zeros(2),
            ["(ndarray)", "2 values"],
        ),
        ("reset", lambda **_: None, ["(NoneType)", "2 values"]),
        ("step", lambda _: (np.zeros(4), 0.0, True, {}), ["(4 values)", "5 values"]),
        ("step", lambda _: None, ["(NoneType)", "5 values"]),
    ],
)
def test_methods_that_return_other_parts_than_they_should(
    make_counting_env, method, answer, words
):
    with refused(RunError, method, *words) as caught:
        step_with(make_counting_env, method, answer)
    assert str(caught.value).endswith("; correct the environment")


@pytest.mark.parametrize(
    ("returned", "line"),
    [
        (
            (np.zeros(4), np.zeros(2), True, False, {}),
            "reward (ndarray [0. 0.]) of broken (copy 0) must be a number",
        ),
        (
            (np.zeros(4), 0.0, True, np.zeros(2), {}),
            "truncated (ndarray [0. 0.]) of broken (copy 0) must be a bool",
        ),
        (
            (["a"] * 4, 0.0, True, False, {}),
            "observation (['a', 'a', 'a', 'a']) of broken (copy 0) must be an array "
            "of numbers",
        ),
        (
            ([1, [2, 3], 4, 5], 0.0, True, False, {}),
            "observation ([1, [2, 3], 4, 5]) of broken (copy 0) must be an array of "
            "numbers",
        ),
    ],
)
def test_parts_of_a_step_that_are_not_what_they_should_be(
    make_counting_env, returned, line
):
    with pytest.raises(RunError) as caught:
        step_with(make_counting_env, "step", lambda _: returned)
    assert str(caught.value) == f"{line}; correct the environment"


def one_step(make_counting_env, *parts):
    one = make_counting_env()
    one.step = lambda _: (np.zeros(4), *parts, {})
    env = envs.make_own(lambda: one, "own", 1, 0)
    env.reset()
    step = env.step(actions_of(0))
    env.close()
    return step


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (("1.0", False, False), "reward (str 1.0) of own (copy 0) must be a number"),
        ((None, False, False), "reward (NoneType None) of own (copy 0) must be"),
        (([1.0], False, False), "reward (list [1.0]) of own (copy 0) must be"),
        ((1j, False, False), "reward (complex 1j) of own (copy 0) must be a number"),
        ((10**400, False, False), "reward (1000"),
        ((10**5000, False, False), "reward (int) of own (copy 0) must be at most"),
        ((1e300, False, False), "reward (1e+300) of own (copy 0) must be at most"),
        ((-np.inf, False, False), "reward (-inf) of own (copy 0) must be finite"),
        ((0.0, "False", False), "terminated (str False) of own (copy 0) must be a b"),
        ((0.0, None, False), "terminated (NoneType None) of own (copy 0) must be a b"),
        ((0.0, 2, False), "terminated (int 2) of own (copy 0) must be a bool"),
        ((0.0, np.nan, False), "terminated (float nan) of own (copy 0) must be a bool"),
        ((0.0, False, "no"), "truncated (str no) of own (copy 0) must be a bool"),
        ((0.0, False, []), "truncated (list []) of own (copy 0) must be a bool"),
    ],
)
def test_strings_and_numbers_out_of_range_are_no_rewards_and_ends(
    make_counting_env, parts, line
):
    with pytest.raises(RunError) as caught:
        one_step(make_counting_env, *parts)
    assert str(caught.value).startswith(line)
    assert str(caught.value).endswith("; correct the environment")


@pytest.mark.parametrize(
    "reward",
    [1, True, Fraction(1), np.float16(1), np.int8(1), np.True_, np.array(1.0)],
    ids=lambda reward: type(reward).__name__,
)
@pytest.mark.parametrize("end", [True, 1, np.True_, np.int64(1), np.array(True)])
def test_any_number_is_a_reward_and_any_bool_an_end(make_counting_env, reward, end):
    step = one_step(make_counting_env, reward, end, end)
    assert (step.reward.tolist(), step.reward.dtype) == ([1.0], np.float32)
    assert (step.terminated.tolist(), step.truncated.tolist()) == ([True], [True])


def test_nested_observations_and_several_choices():
    env = envs.make_own(Nested, "nested", 3, 0)
    assert env.spec.observations == {
        "observation/image": TensorSpec(dtype="uint8", shape=(1, 8, 8)),
        "observation/vector": TensorSpec(shape=(2,)),
    }
    state, total = env.reset(), np.zeros(3)
    for _ in range(10):
        is_right = state["observation/image"][:, 0, 0, -1] == 255
        step = env.step(is_right ^ (state["observation/vector"][:, 0] < 0) + 0)
        state, total = step.observation, total + step.reward
    assert total.tolist() == [10, 10, 10]
    assert step.terminated.all()
    images = state["observation/image"]
    assert images.shape == (3, 1, 8, 8)
    assert images.dtype == np.uint8

    choices = envs.make_own(MultiChoice, "choices", 2, 0)
    assert choices.spec.actions == ActionSpec(shape=(3,), num_choices=(2, 3, 4))
    shown = choices.reset()["observation"]
    parts = np.split(shown, [2, 5], axis=1)
    wanted = np.stack([part.argmax(axis=1) for part in parts], axis=1)
    assert choices.step(wanted).reward.tolist() == [1, 1]


def test_numbers_as_actions():
    env = envs.make("Pendulum-v1", 2, 0)
    assert env.spec.actions == ActionSpec(shape=(1,), low=(-2.0,), high=(2.0,))
    env.reset()
    step = env.step(np.array([[2.0], [-1.0]], np.float32))
    assert step.observation["observation"].shape == (2, 3)
    with refused(RunError, "action ([2.5])"):
        env.step(np.array([[2.0], [2.5]], np.float32))
    env.close()


def test_steps_are_the_callers_to_keep():
    env = envs.make_own(Nested, "nested", 2, 0)
    first = env.reset()
    kept = {name: array.copy() for name, array in first.items()}
    steps = [env.step(actions_of(0, 0)) for _ in range(12)]
    assert [bool(step.is_reset[0]) for step in steps] == [False] * 10 + [True, False]
    for name, array in kept.items():
        assert np.array_equal(first[name], array)


def test_own_environments_that_are_refused(make_counting_env):
    def message(make_one):
        with pytest.raises(UsageError) as caught:
            envs.make_own(make_one, "own", 2, 0)
        return str(caught.value)

    def broken():
        raise OSError("no such\nfile")

    assert message(broken) == (
        'environment ("own") must not raise when it is made, but raised OSError: '
        "no such file; correct it"
    )
    assert message(dict) == (
        'environment ("own") must be a gymnasium.Env, not dict; '
        "derive it from that class"
    )
    assert message(gymnasium.Env) == (
        'environment ("own") must have an attribute observation_space, a '
        "gymnasium.Space; set it in __init__"
    )
    closed = []
    starts = iter([0, 1])

    def uneven():
        one = make_counting_env((3,), next(starts))
        one.close = lambda: closed.append(one)
        return one

    assert message(uneven) == (
        'environment ("own") must have the same spaces in every copy; correct it'
    )
    assert len(closed) == 2


def test_one_instance_for_all_copies_is_refused(make_counting_env):
    one = make_counting_env()
    wrapped = gymnasium.wrappers.TimeLimit
    for make in (lambda: one, lambda: wrapped(one, 5)):
        with refused(UsageError, '("own")'):
            envs.make_own(make, "own", 2, 0)
    first = envs.make_own(lambda: one, "own", 1, 0)
    with refused(UsageError, '("own")'):
        envs.make_own(lambda: one, "own", 1, 1)  # another group's copy
    first.close()
    envs.make_own(lambda: one, "own", 1, 1).close()


def test_seeds_of_copies_are_c_ints_and_differ():
    for seed, num_envs in ((0, 1), (3, 4096), (2**64 - 1, 16)):
        seeds = copy_seeds(seed, num_envs)
        assert len(set(seeds)) == len(seeds) == num_envs
        assert all(0 <= one < 2**31 for one in seeds)
        # More copies do not change the seeds of the first ones.
        assert copy_seeds(seed, num_envs + 1)[:num_envs] == seeds


def test_arguments_are_checked(make_counting_env):
    with refused(UsageError, "num_envs (0)"):
        GymnasiumEnv(make_counting_env, 0, 0, name="counting")
    with refused(UsageError, "seed (-1)"):
        GymnasiumEnv(make_counting_env, 1, -1, name="counting")
