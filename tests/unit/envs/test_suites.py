"""Suites of environments: names, what is observed, and that steps are the package's."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from tengen import envs
from tengen.distribution import pip_install, pip_install_extra
from tengen.envs.copies import copy_seeds
from tengen.envs.suites import dmlab, minigrid, vizdoom
from tengen.errors import EnvError, RunError, UsageError
from tests.refusals import refused

PACKAGES = {
    "mujoco/Hopper": "mujoco",
    "minigrid/DoorKey-5x5": "minigrid",
    "popgym/RepeatPreviousEasy": "popgym",
    "vizdoom/Basic": "vizdoom",
    "football/academy_empty_goal_close": "envpool",
    "atari/Pong": "ale_py",
    "minatar/Asterix": "minatar",
    "gobigger/t2p1": "gobigger",
}
IDS = {
    "mujoco/Hopper": "Hopper-v5",
    "minigrid/DoorKey-5x5": "MiniGrid-DoorKey-5x5-v0",
    "minigrid/PutNear-6x6-N2": "MiniGrid-PutNear-6x6-N2-v0",
    "popgym/RepeatPreviousEasy": "popgym-RepeatPreviousEasy-v0",
    "popgym/AutoencodeEasy": "popgym-AutoencodeEasy-v0",
}


def needs(task):
    """Skips where a suite's package is not installed."""
    package = {name.split("/")[0]: one for name, one in PACKAGES.items()}
    pytest.importorskip(package[task.split("/")[0]])


def actions_of(env, num_steps, num_envs=None):
    """Returns random actions ``[T, N, ...]`` of all copies."""
    random, spec = np.random.default_rng(0), env.spec.actions
    shape = (num_steps, num_envs or env.num_envs)
    if spec.is_discrete:
        return random.integers(0, spec.num_choices[0], shape)
    return random.uniform(spec.low, spec.high, (*shape, *spec.shape)).astype(np.float32)


@pytest.mark.parametrize("task", IDS)
def test_steps_are_those_of_the_package(task):
    needs(task)
    import gymnasium

    env = envs.make(task, 2, 3)
    own = gymnasium.make(IDS[task], disable_env_checker=True)
    first, _ = own.reset(seed=copy_seeds(3, 2)[1])
    observation = env.reset()
    num_ends, num_rewards, is_over = 0, 0, False
    wanted = first
    for actions in actions_of(env, 400):
        for name, values in seen(task, wanted).items():
            np.testing.assert_array_equal(observation[name][1], values)
        step = env.step(actions)
        assert step.is_reset[1] == is_over
        if is_over:
            wanted, _ = own.reset()
            is_over = False
        else:
            action = env.own_action(actions[1])
            wanted, reward, terminated, truncated, _ = own.step(action)
            assert step.reward[1] == np.float32(reward)
            assert (step.terminated[1], step.truncated[1]) == (terminated, truncated)
            is_over = terminated or truncated
            num_ends += is_over
            num_rewards += reward != 0
        observation = step.observation
    env.close()
    assert num_ends or task.startswith("minigrid")
    assert num_rewards or task.startswith("minigrid")


def seen(task, observation):
    """Returns what a network should see, computed another way than the suite does."""
    if task.startswith("mujoco"):
        return {"observation": observation.astype(np.float32)}
    if task == "popgym/RepeatPreviousEasy":
        return {"observation": np.eye(4)[observation]}
    if task == "popgym/AutoencodeEasy":
        mode, card = observation
        return {"observation": np.concatenate([np.eye(2)[mode], np.eye(4)[card]])}
    image = np.zeros((20, 7, 7))
    for x in range(7):
        for y in range(7):
            kind, colour, state = observation["image"][x, y]
            image[kind, x, y] = 1
            if kind not in (0, 1):
                image[11 + colour, x, y] = image[17 + state, x, y] = 1
    parts = {
        "observation/image": image,
        "observation/direction": np.eye(4)[observation["direction"]],
    }
    if task.startswith("minigrid/PutNear"):
        found = re.fullmatch(
            r"put the (\w+) (\w+) near the (\w+) (\w+)", observation["mission"]
        )
        colours = ["blue", "green", "grey", "purple", "red", "yellow"]
        kinds = ["key", "ball", "box"]
        words = [colours, kinds, colours, kinds]
        parts["observation/mission"] = np.concatenate(
            [
                np.array([one == word for one in choices])
                for word, choices in zip(found.groups(), words, strict=True)
            ]
        )
    return parts


@pytest.mark.parametrize("task", PACKAGES)
def test_a_seed_and_actions_determine_the_steps(task):
    needs(task)

    def rows(env):
        kept = [*env.reset().values()]
        for actions in actions_of(env, 40, 3):
            step = env.step(actions[: env.num_envs])
            kept += [*step.observation.values(), step.reward, step.is_reset]
        return kept

    env = envs.make(task, 3, 7)
    first, again = rows(env), rows(env)
    env.close()
    env.close()
    # A copy's stream depends neither on other copies nor on another seed's.
    fewer, other = envs.make(task, 2, 7), envs.make(task, 3, 8)
    for one, same, two in zip(first, again, rows(fewer), strict=True):
        np.testing.assert_array_equal(one, same)
        np.testing.assert_array_equal(one[:2], two)
    for rest in (rows(other), [row[[1, 2, 0]] for row in first]):
        assert any((a != b).any() for a, b in zip(first, rest, strict=True))
    fewer.close()
    other.close()


@pytest.mark.parametrize(
    ("task", "advice"),
    [
        ("mujoco/Hoper", "mujoco/Hopper"),
        ("minigrid/DoorKey-5x4", "minigrid/DoorKey-5x5"),
        ("popgym/RepeatPrevious", "popgym/RepeatPreviousHard"),
        ("vizdoom/basic", "vizdoom/Basic"),
        ("minatar/Brakout", "minatar/Breakout"),
        ("gobigger/t2p", "gobigger/t2p2"),
        ("atari/Pnog", "atari/Pong"),
        ("atari/Pong/clasic", "atari/Pong/classic"),
    ],
)
def test_an_unknown_name_has_a_nearest_one(task, advice):
    needs(task)
    with refused(UsageError, f'"{advice}"'):
        envs.make(task, 1, 0)
    suite = task.split("/")[0]
    names = {name for name in envs.names() if name.startswith(f"{suite}/")}
    assert advice.removesuffix("/classic") in names


@pytest.mark.parametrize("level", ["../../evil", "a/../../evil", "/tmp/evil", "a//b"])
def test_a_level_of_another_folder_is_refused(level):
    with refused(UsageError, f"dmlab/{level}"):
        envs.make(f"dmlab/{level}", 1, 0)


@pytest.mark.parametrize("task", [*PACKAGES, "dmlab/rooms_watermaze"])
def test_a_missing_package_is_told_by_its_pip_line(task, monkeypatch):
    for name in (*PACKAGES.values(), "deepmind_lab"):
        monkeypatch.setitem(sys.modules, name, None)
    suite = task.split("/")[0]
    own = {
        "dmlab": "deepmind/lab",
        "minatar": pip_install("--no-deps", "minatar==1.0.15"),
    }
    line = own.get(suite) or pip_install_extra(suite)
    with refused(UsageError, line):
        envs.make(task, 1, 0)
    assert not [name for name in envs.names() if name.startswith(f"{suite}/")]


def test_a_mission_that_nobody_listed_ends_the_run():
    needs("minigrid/DoorKey-5x5")
    import gymnasium
    from minigrid.core.mission import MissionSpace

    made = gymnasium.make("MiniGrid-GoToDoor-5x5-v0", disable_env_checker=True)
    made.observation_space["mission"] = MissionSpace(
        mission_func=lambda colour: f"go to the {colour} wall",
        ordered_placeholders=[["red", "green"]],
    )
    wrap = minigrid.SUITE.wrap
    with refused(RunError, "mission ("):
        wrap(made).reset(seed=0)


def test_vizdoom_screens_and_ends(tmp_path, monkeypatch):
    needs("vizdoom/Basic")
    monkeypatch.chdir(tmp_path)
    import vizdoom as package

    env = envs.make("vizdoom/Basic", 1, 5)
    own = package.DoomGame()
    own.load_config(str(Path(package.scenarios_path) / "basic.cfg"))
    own.set_doom_config_path("/dev/null")
    own.set_window_visible(False)
    own.set_screen_resolution(package.ScreenResolution.RES_160X120)
    own.set_screen_format(package.ScreenFormat.CRCGCB)
    own.init()
    own.set_seed(copy_seeds(5, 1)[0])
    own.new_episode()
    observation = env.reset()
    ends = []
    for tick in range(200):
        state = own.get_state()
        if state is not None:
            parts = state.screen_buffer.reshape(3, 60, 2, 80, 2).astype(np.float64)
            mean = np.floor(parts.mean((2, 4)) + 0.5)
            np.testing.assert_array_equal(observation["observation/screen"][0], mean)
            ammunition = state.game_variables[0] / 100
            assert observation["observation/variables"][0, 0] == np.float32(ammunition)
        # Nothing at all in the first episode, which its time limit ends.
        action = 0 if not ends else 1 + tick % 3
        presses = env.own_action(np.array(action))
        was_over = own.is_episode_finished()
        step = env.step(np.array([action]))
        assert step.is_reset[0] == was_over
        if was_over:
            own.new_episode()
        else:
            buttons = [0.0, 0.0, 0.0]
            if presses:
                buttons[presses - 1] = 1.0
            assert step.reward[0] == own.make_action(buttons, vizdoom.TICS)
        if step.terminated[0] or step.truncated[0]:
            ends.append((bool(step.terminated[0]), bool(step.truncated[0])))
        observation = step.observation
    own.close()
    env.close()
    assert ends[0] == (False, True)
    assert (True, False) in ends
    assert env.spec.frames_per_step == vizdoom.TICS
    # The package leaves an empty folder behind, but no settings.
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_a_scenario_whose_file_is_gone_is_named(tmp_path, monkeypatch):
    package = pytest.importorskip("vizdoom")
    monkeypatch.setattr(package, "scenarios_path", str(tmp_path))
    with refused(UsageError, "basic.cfg", "vizdoom"):
        envs.make("vizdoom/Basic", 1, 0)


def test_football_copies_are_single_ones():
    needs("football/academy_empty_goal_close")
    import envpool

    task = "football/academy_empty_goal_close"
    env = envs.make(task, 3, 4)
    own = envpool.make_gymnasium(
        "gfootball/academy_empty_goal_close-v1",
        num_envs=1,
        num_threads=1,
        seed=0,
        env_seed=[copy_seeds(4, 3)[2]],
    )
    planes, (states, _) = env.reset(), own.reset()
    num_ends, was_over = 0, False
    for actions in actions_of(env, 600):
        np.testing.assert_array_equal(
            planes["observation"][2], states[0].transpose(2, 0, 1) == 255
        )
        step = env.step(actions)
        states, reward, terminated, truncated, info = own.step(
            actions[2:].astype(np.int32)
        )
        assert step.is_reset[2] == was_over == (info["elapsed_step"][0] == 0)
        assert (step.reward[2], step.terminated[2]) == (reward[0], terminated[0])
        was_over = bool(terminated[0] | truncated[0])
        num_ends += was_over
        planes = step.observation
    assert num_ends

    def gone():
        raise RuntimeError("no such\nscenario")

    env._made = gone
    with refused(EnvError, "RuntimeError: no such scenario"):
        env.reset()
    env.close()


class FakeLab:
    """The interface of ``deepmind_lab.Lab``; a level of five steps that counts."""

    def __init__(self, level, observations, config, renderer, level_cache):
        self.level, self.observed, self.renderer = level, observations, renderer
        self.size = int(config["height"]), int(config["width"])
        self.steps, self.seed, self.actions = -1, -1, []
        assert callable(level_cache.fetch)
        assert callable(level_cache.write)
        FAKES.append(self)

    def reset(self, episode=-1, seed=None):
        assert seed is not None
        self.steps, self.seed = 0, seed

    def is_running(self):
        return 0 <= self.steps < 5

    def observations(self):
        if not self.is_running():
            raise RuntimeError("Environment is not running")
        screen = np.full((*self.size, 3), self.steps, np.uint8)
        screen[..., 2] = self.seed % 256
        shown = {"RGB_INTERLEAVED": screen, "INSTR": "pick the red ball"}
        return {name: shown[name] for name in self.observed}

    def step(self, action, num_steps=1):
        assert action.dtype == np.intc
        assert num_steps == 4
        self.actions.append(tuple(int(part) for part in action))
        self.steps += 1
        return float(self.steps)

    def close(self):
        self.steps = -1


FAKES: list[FakeLab] = []


@pytest.fixture
def fake_lab(monkeypatch, tmp_path):
    """Puts the fake where DeepMind Lab would be."""
    module = types.ModuleType("deepmind_lab")
    module.Lab = FakeLab
    module.__spec__ = importlib.util.spec_from_loader("deepmind_lab", None)
    monkeypatch.setitem(sys.modules, "deepmind_lab", module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    FAKES.clear()


@pytest.mark.usefixtures("fake_lab")
def test_lab_levels():
    env = envs.make("dmlab/explore_goal_locations_small", 2, 1)
    assert FAKES[0].level == "contributed/dmlab30/explore_goal_locations_small"
    assert FAKES[0].renderer == "software"
    screens = [env.reset()["observation"]]
    assert screens[0].shape == (2, 3, 72, 96)
    assert env.spec.is_hard
    assert env.spec.is_partial
    seeds = [FAKES[0].seed]
    ends, resets, rewards = [], [], []
    for action in range(9):
        step = env.step(np.array([action, 0]))
        screens.append(step.observation["observation"])
        ends.append(bool(step.terminated[0]))
        resets.append(bool(step.is_reset[0]))
        rewards.append(float(step.reward[0]))
    seeds.append(FAKES[0].seed)
    assert [int(screen[0, 0, 0, 0]) for screen in screens] == [
        0, 1, 2, 3, 4, 4, 0, 1, 2, 3
    ]  # fmt: skip
    assert ends == [False] * 4 + [True] + [False] * 4
    assert resets == [False] * 5 + [True] + [False] * 3
    assert rewards == [1, 2, 3, 4, 5, 0, 1, 2, 3]
    # The step that resets holds no action.
    assert FAKES[0].actions == [dmlab.ACTIONS[i] for i in (0, 1, 2, 3, 4, 6, 7, 8)]
    assert seeds[0] != seeds[1]
    assert FAKES[0].seed != FAKES[1].seed
    first = seeds[0]
    env.reset()
    assert FAKES[0].seed == first
    assert env.spec.frames_per_step == 4
    env.close()


@pytest.mark.usefixtures("fake_lab")
def test_lab_instructions_and_names():
    env = envs.make("dmlab/language_execute_random_task", 1, 1)
    words = env.reset()["observation/instruction"]
    assert words.shape == (1, 256)
    assert words.sum() == 4
    env.close()
    with refused(UsageError, '"dmlab/rooms_watermaze"'):
        envs.make("dmlab/rooms_watermase", 1, 0)
    assert "dmlab/rooms_watermaze" in envs.names()


def test_lab_maps_are_kept_whole(tmp_path, monkeypatch):
    cache = dmlab.LevelCache(tmp_path / "kept")
    compiled, wanted = tmp_path / "made.pk3", tmp_path / "wanted.pk3"
    compiled.write_bytes(b"map")
    key = "../../no path: a key"
    assert not cache.fetch(key, str(wanted))
    cache.write(key, str(compiled))
    assert cache.fetch(key, str(wanted))
    assert wanted.read_bytes() == b"map"
    assert len(list((tmp_path / "kept").iterdir())) == 1

    def full(source, target):
        Path(target).write_bytes(b"m")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dmlab.shutil, "copyfile", full)
    cache.write("another", str(compiled))
    monkeypatch.undo()
    assert not cache.fetch("another", str(wanted))
    assert len(list((tmp_path / "kept").iterdir())) == 1
