"""Copies that are looked at do what others do, and have pictures."""

import numpy as np
import pytest

from tengen import envs, games
from tengen.envs.filmed import draw_planes, draw_screen
from tengen.envs.suites import ale, atari
from tengen.envs.suites.ale import PROTOCOLS
from tengen.errors import RunError, UsageError
from tests.refusals import refused

pytest.importorskip("gymnasium")

MODULE = "tests.environments"
NEEDS = {
    "atari": "ale_py",
    "minatar": "minatar",
    "minigrid": "minigrid",
    "mujoco": "mujoco",
    "popgym": "popgym",
    "vizdoom": "vizdoom",
    "football": "envpool",
}
SHAPES = {
    "atari/Breakout": (210, 160, 3),
    "minatar/Breakout": (240, 240, 3),
    "minigrid/Empty-5x5": (160, 160, 3),
    "vizdoom/Basic": (240, 320, 3),
    "football/academy_corner": (288, 384, 3),
    "CartPole-v1": (400, 600, 3),
    "Pendulum-v1": (500, 500, 3),
    f"{MODULE}:Shown": (10, 5, 3),
    f"{MODULE}:ShownAsAsked": (10, 5, 3),
}


def needs(task):
    pytest.importorskip(NEEDS.get(task.split("/")[0], "gymnasium"))
    if task.endswith("-v1"):
        pytest.importorskip("pygame")
    games.allow(task)


def actions_of(env, num_steps):
    spec, shape = env.spec.actions, (num_steps, env.num_envs)
    rng = np.random.default_rng(5)
    if spec.is_discrete:
        return rng.integers(0, spec.num_choices[0], shape)
    return rng.uniform(spec.low, spec.high, (*shape, *spec.shape)).astype(np.float32)


def steps_of(env, num_steps):
    first = env.reset()
    return [first, *(env.step(action) for action in actions_of(env, num_steps))]


@pytest.mark.parametrize("task", SHAPES)
def test_what_is_looked_at_steps_as_it_does_otherwise(task):
    needs(task)
    env, filmed = envs.make(task, 3, 1), envs.make_filmed(task, 3, 1, 2)
    assert filmed.spec == env.spec
    assert 1 <= filmed.pictures_per_s <= 125
    expected, found = env.reset(), filmed.reset()
    pictures = []
    for action in [None, *actions_of(env, 40)]:
        if action is not None:
            expected, found = env.step(action), filmed.step(action)
        np.testing.assert_equal(found, expected)
        pictures.append(filmed.picture(1))
    for picture in pictures:
        assert (picture.shape, picture.dtype) == (SHAPES[task], np.uint8)
    assert len({picture.tobytes() for picture in pictures}) > 5
    env.close()
    filmed.close()
    filmed.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_atari_in_colours_is_the_episode_that_is_scored(protocol):
    """Over ends of episodes too, with sticky actions, no-ops and fire."""
    pytest.importorskip("ale_py")
    env = envs.make_filmed(f"atari/Breakout/{protocol}", 3, 7, 2)
    grey = env.reset()["observation"]
    rewards, num_over = 0.0, 0
    for action in actions_of(env, 300):
        step = env.step(action)  # compares rewards and ends
        grey = step.observation["observation"]
        rewards += float(step.reward[:2].sum())
        num_over += int(step.terminated[:2].sum())
    assert rewards > 0
    assert num_over > 0
    # The pictures are of the same screens, in luminance and scaled.
    for copy in range(2):
        luminance = env.picture(copy) @ np.array([0.299, 0.587, 0.114])
        assert luminance.mean() == pytest.approx(grey[copy, 0].mean(), abs=2.0)
    assert (env.picture(0) != env.picture(1)).any()
    env.close()


def test_atari_that_fell_out_otherwise_is_told(monkeypatch):
    pytest.importorskip("ale_py")

    def differing(name, *args, **options):
        return ale.vector_env("atari/Breakout/classic", *args, **options)

    monkeypatch.setattr(atari, "vector_env", differing)
    env = envs.make_filmed("atari/Breakout/v5", 2, 0, 1)
    with refused(RunError, "film (atari/Breakout/v5)"):
        steps_of(env, 500)
    env.close()


def test_mujoco_without_a_display():
    pytest.importorskip("mujoco")
    try:
        env = envs.make_filmed("mujoco/Hopper", 2, 0, 2)
    except UsageError as error:
        pytest.skip(f"nothing draws here: {error}")
    plain = envs.make("mujoco/Hopper", 2, 0)
    np.testing.assert_equal(steps_of(env, 20), steps_of(plain, 20))
    for copy in range(2):
        picture = env.picture(copy)
        assert picture.shape == (480, 480, 3)
        assert picture.std() > 10
    env.close()


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("popgym/RepeatPreviousEasy", 'metadata lacks render mode "rgb_array"'),
        (f"{MODULE}:Catch", 'metadata lacks render mode "rgb_array"'),
        (f"{MODULE}:ShownBadly", "render() returned object (), not uint8 [H, W, 3]"),
        (f"{MODULE}:NotShown", "render() raised ValueError: no screen; correct"),
        ("CartPole-v7", "is not known to Gymnasium"),
        ("atari/Pomg", "is not in the suite atari/"),
    ],
)
def test_what_has_no_pictures_is_refused(task, why):
    needs(task)
    with pytest.raises(UsageError) as refused:
        envs.make_filmed(task, 2, 0, 1)
    line = str(refused.value)
    assert line.startswith(f'environment ("{task}") ')
    assert why in line
    assert "\n" not in line


def test_planes_and_screens():
    planes = np.zeros((3, 2, 2), np.bool_)
    planes[0, 0, 0] = planes[1, 0, 1] = planes[2, 0, 1] = True
    drawn = draw_planes(planes, 2)
    assert drawn.shape == (4, 4, 3)
    cells = drawn[::2, ::2]
    np.testing.assert_array_equal(cells, drawn[1::2, 1::2])
    assert (cells[1, 0] == cells[1, 1]).all()
    assert len({tuple(cell) for cell in cells.reshape(4, 3).tolist()}) == 3
    screen = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    drawn = draw_screen(screen, 3)
    assert drawn.shape == (6, 6, 3)
    assert drawn[5, 0].tolist() == [2, 6, 10]
