"""Atari on ALE's vector form: what the package gives, and its traps."""

import sys

import numpy as np
import pytest

from tengen.envs.suites import ale
from tengen.envs.suites.ale import PROTOCOLS
from tengen.envs.suites.atari import SUITE as suite
from tengen.errors import EnvError, RunError, UsageError
from tests.refusals import refused

needs_ale = pytest.mark.skipif(not suite.names(), reason="needs pip install ale-py")


def actions_of(env, num_steps, seed=0):
    (num_choices,) = env.spec.actions.num_choices
    shape = (num_steps, env.num_envs)
    return np.random.default_rng(seed).integers(0, num_choices, shape)


def play(env, num_steps):
    first = env.reset()["observation"]
    return first, [env.step(action) for action in actions_of(env, num_steps)]


@needs_ale
def test_screens_and_rewards_are_those_of_the_package():
    from ale_py.vector_env import AtariVectorEnv

    env = suite.make("atari/Breakout", 2, 3)
    assert env.spec.observations["observation"].shape == (1, 84, 84)
    theirs = AtariVectorEnv(
        "breakout",
        2,
        repeat_action_probability=0.25,
        noop_max=0,
        use_fire_reset=False,
        reward_clipping=False,
    )
    screens, _ = theirs.reset(seed=env.seeds)
    np.testing.assert_array_equal(env.reset()["observation"][:, 0], screens[:, -1])
    is_over = np.zeros(2, np.bool_)
    num_resets = 0
    for action in actions_of(env, 400):
        step = env.step(action)
        screens, reward, terminated, truncated, _ = theirs.step(action.astype(np.int32))
        np.testing.assert_array_equal(
            step.observation["observation"][:, 0], screens[:, -1]
        )
        np.testing.assert_array_equal(step.reward, reward)
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.is_reset, is_over)
        assert (step.reward[step.is_reset] == 0).all()
        assert step.life_lost is None
        is_over = terminated | truncated
        num_resets += int(step.is_reset.sum())
    assert num_resets >= 2


@needs_ale
def test_a_life_ends_what_is_learned_and_not_the_episode():
    env = suite.make("atari/Breakout/classic", 2, 1)
    _, steps = play(env, 400)
    lost = np.stack([step.life_lost for step in steps])
    over = np.stack([step.terminated for step in steps])
    resets = np.stack([step.is_reset for step in steps])
    # Five lives an episode, the last of which ends it too.
    assert over.sum() >= 2
    assert lost.sum() >= 5 * over.sum()
    assert (resets[1:] == over[:-1]).all()
    assert not lost[resets].any()
    rewards = np.stack([step.reward for step in steps])
    assert env.spec.reward_bound == 1.0
    assert env.spec.learned(np.float32([[4.0, -7.0, 0.5]])).tolist() == [[1, -1, 0.5]]
    assert rewards.max() >= 1


@needs_ale
def test_a_limit_cuts_an_episode_short(monkeypatch):
    # In frames, of which a step is four.
    monkeypatch.setattr(ale, "_MAX_FRAMES", 80)
    env = suite.make("atari/Pong", 2, 0)
    assert env.spec.max_episode_steps == 20
    _, steps = play(env, 42)
    cut = [step.truncated.all() for step in steps]
    assert [place for place, is_cut in enumerate(cut) if is_cut] == [19, 40]
    assert not any(step.terminated.any() for step in steps)
    assert steps[20].is_reset.all()


@needs_ale
def test_presets_say_what_is_played():
    specs = {
        name: suite.make(f"atari/Pong/{name}", 1, 0).spec.actions.num_choices
        for name in PROTOCOLS
    }
    assert specs == {"v5": (6,), "r2d2": (18,), "classic": (6,)}
    assert suite.make("atari/Pong", 1, 0).spec.protocol == "v5"
    assert suite.with_protocol("atari/Pong/classic", "r2d2") == "atari/Pong/r2d2"
    with refused(UsageError, "clasic"):
        suite.with_protocol("atari/Pong", "clasic")


@needs_ale
def test_no_ops_begin_episodes_apart():
    seen = {}
    for name in PROTOCOLS:
        env = suite.make(f"atari/SpaceInvaders/{name}", 4, 0)
        env.reset()
        for _ in range(30):
            step = env.step(np.zeros(4, np.int64))
        seen[name] = len({s.tobytes() for s in step.observation["observation"]})
    # To repeat an action that does nothing changes nothing.
    assert seen["v5"] == 1
    assert min(seen["classic"], seen["r2d2"]) > 1


@needs_ale
@pytest.mark.parametrize("name", PROTOCOLS)
def test_fire_is_pressed_by_classic_alone(name):
    """A ball that nobody served is never lost."""
    env = suite.make(f"atari/Breakout/{name}", 2, 0)
    env.reset()
    steps = [env.step(np.zeros(2, np.int64)) for _ in range(60)]
    screens = np.stack([step.observation["observation"] for step in steps])
    moves = (screens[1:] != screens[1]).any()
    lost = [step.life_lost for step in steps if step.life_lost is not None]
    assert moves == (name == "classic")
    assert bool(np.any(lost)) == (name == "classic")


@needs_ale
def test_the_screen_at_a_limit_is_not_quite_new(monkeypatch):
    """The package does not draw anew where a limit cuts the episode.

    So what bootstraps there is a little stale; a version that draws it fails here.
    """
    monkeypatch.setattr(ale, "_MAX_FRAMES", 400)
    cut = suite.make("atari/Pong/classic", 1, 0)
    monkeypatch.undo()
    whole = suite.make("atari/Pong/classic", 1, 0)
    np.testing.assert_array_equal(
        cut.reset()["observation"], whole.reset()["observation"]
    )
    screens = []
    for action in actions_of(whole, 100):
        ours, theirs = cut.step(action), whole.step(action)
        screens.append(theirs.observation["observation"])
        if ours.truncated.any():
            break
        np.testing.assert_array_equal(ours.observation["observation"], screens[-1])
    assert len(screens) > 90
    assert ours.truncated.all()
    stale = ours.observation["observation"] != screens[-1]
    assert 0 < stale.sum() < 200


@needs_ale
def test_screens_are_the_callers_to_keep():
    first, steps = play(suite.make("atari/Pong", 1, 0), 40)
    kept = [first, *(step.observation["observation"] for step in steps)]
    assert len({screen.ctypes.data for screen in kept}) == len(kept)
    assert all(screen.flags.writeable for screen in kept)


@needs_ale
@pytest.mark.parametrize("action", [-1, 6])
def test_an_action_out_of_range_does_not_hang(action):
    env = suite.make("atari/Pong", 2, 0)
    env.reset()
    with refused(RunError, "action (", "0 to 5"):
        env.step(np.array([0, action]))


@needs_ale
def test_what_others_stepped_is_shown_as_training_was():
    env = suite.make("atari/Pong", 1, 0)
    screen = np.arange(84 * 84, dtype=np.uint8).reshape(84, 84)
    for given in (screen, np.stack([screen * 0, screen])):
        np.testing.assert_array_equal(env.observed(given)["observation"][0, 0], screen)
    with refused(UsageError, "uint8"):
        env.observed(np.zeros((210, 160, 3), np.uint8))
    assert env.own_action(np.array(5)) == 5


@needs_ale
def test_ale_without_gymnasium_is_one_line(monkeypatch):
    """ALE can be installed alone; its vector form cannot be imported then."""
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with refused(UsageError, "gymnasium (missing)"):
        suite.make("atari/Pong", 1, 0)


@needs_ale
@pytest.mark.parametrize("content", [None, b"no game"])
def test_a_rom_that_is_not_there_or_damaged_is_named(content, tmp_path, monkeypatch):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    if content is not None:
        (tmp_path / "pong.bin").write_bytes(content)
    with refused(UsageError, "pong.bin") as told:
        suite.make("atari/Pong", 1, 0)
    assert "\n" not in str(told.value)


@needs_ale
def test_what_the_package_raises_is_named():
    env = suite.make("atari/Pong", 1, 0)
    env.reset()
    env.close()

    class Broken:
        def step(self, actions):
            raise RuntimeError("the emulator\nis gone")

        def reset(self, *, seed):
            raise RuntimeError("it never was\nthere")

    env._envs = Broken()
    with refused(EnvError, "RuntimeError: it never was there"):
        env.reset()
    with refused(EnvError, "RuntimeError: the emulator is gone"):
        env.step(np.zeros(1, np.int64))
