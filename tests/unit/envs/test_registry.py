import sys

import numpy as np
import pytest

from tengen import envs
from tengen.errors import UsageError
from tengen.games import allow
from tengen.tensors import TensorSpec
from tests.refusals import refused


def test_cartpole_by_name():
    pytest.importorskip("gymnasium")
    assert "CartPole-v1" in envs.names()
    env = envs.make("CartPole-v1", 3, seed=5)
    assert env.spec == envs.EnvSpec(
        name="CartPole-v1",
        observations={"observation": TensorSpec(shape=(4,))},
        actions=envs.ActionSpec(num_choices=(2,)),
        max_episode_steps=500,
        reward_threshold=475.0,
    )
    assert envs.env_spec("CartPole-v1") == env.spec
    first = env.reset()["observation"]
    step = env.step(np.array([0, 1, 0]))
    assert first.shape == step.observation["observation"].shape == (3, 4)
    assert step.reward.tolist() == [1, 1, 1]
    env.close()


def test_a_time_limit_truncates():
    gymnasium = pytest.importorskip("gymnasium")
    assert gymnasium.spec("MountainCar-v0").max_episode_steps == 200
    env = envs.make("MountainCar-v0", 1, seed=0)
    env.reset()
    # Coasting never reaches the goal.
    steps = [env.step(np.array([1])) for _ in range(201)]
    assert not any(step.terminated[0] for step in steps)
    assert [t for t, step in enumerate(steps) if step.truncated[0]] == [199]
    assert [t for t, step in enumerate(steps) if step.is_reset[0]] == [200]
    env.close()


def test_unknown_names_are_refused():
    pytest.importorskip("gymnasium")
    with pytest.raises(UsageError) as caught:
        envs.make("CartPol-v1", 1, 0)
    assert str(caught.value) == (
        'environment ("CartPol-v1") is not known to Gymnasium; '
        'did you mean "CartPole-v1"?'
    )
    with refused(UsageError, "pprint_registry") as caught:
        envs.make("qqq", 1, 0)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize("name", ["antigravity:CartPole-v1", "minatar/a:Breakout"])
def test_a_name_that_nobody_typed_never_imports_a_module(name):
    with pytest.raises(UsageError) as caught:
        envs.make(name, 1, 0)
    assert str(caught.value) == (
        f"task ({name}) is a program, which runs only if you name it; add --task "
        f"{name} to run it (in Python task=)"
    )
    assert "antigravity" not in sys.modules


def test_an_own_environment_that_was_typed():
    pytest.importorskip("gymnasium")
    name = "tests.environments:Catch"
    allow(name)
    env = envs.make(name, 2, 3)
    assert env.spec == envs.EnvSpec(
        name=name,
        observations={"observation": TensorSpec(shape=(10, 5))},
        actions=envs.ActionSpec(num_choices=(3,)),
        max_episode_steps=None,
        reward_threshold=None,
    )
    assert envs.env_spec(name) == env.spec
    assert env.reset()["observation"].shape == (2, 10, 5)
    env.close()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "tests.environments:Cach",
            'name a class of tests.environments; did you mean "',
        ),
        ("no_such_module:Env", "must name an importable module, but importing"),
        ("tests.unit.envs.test_registry:Unlike", "must be a gymnasium.Env, not Unlike"),
    ],
)
def test_own_environments_that_are_none(name, line):
    pytest.importorskip("gymnasium")
    allow(name)
    with refused(UsageError, line):
        envs.make(name, 1, 0)


class Unlike:
    """An environment's methods, and no base class."""

    def reset(self): ...

    def step(self, action): ...


def test_importing_envs_imports_no_suite():
    import subprocess

    code = (
        "import sys, tengen.envs as e; e.is_known('minatar/Pong'); "
        "assert not {'gymnasium', 'minatar'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_gymnasium_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert not any("CartPole" in name for name in envs.names())
    with refused(UsageError, "'gymnasium>=1.1'"):
        envs.make("CartPole-v1", 1, 0)


@pytest.mark.parametrize("error", ["DependencyNotInstalled", "ModuleNotFoundError"])
def test_a_missing_dependency_of_one_environment_is_named(error):
    gymnasium = pytest.importorskip("gymnasium")
    kind = getattr(gymnasium.error, error, ModuleNotFoundError)

    def make():
        raise kind("physics is not\ninstalled")

    with pytest.raises(UsageError) as caught:
        envs.make_own(make, "Ant", 1, 0)
    assert str(caught.value) == (
        'environment ("Ant") needs a missing package: physics is not installed; '
        "install it"
    )


def test_a_spec_makes_an_environment_once():
    pytest.importorskip("gymnasium")
    from tests.environments import Counted

    allow("tests.environments:Counted")
    before = Counted.num_made
    specs = [envs.env_spec("tests.environments:Counted") for _ in range(3)]
    assert specs[0] == specs[2]
    assert Counted.num_made == before + 1
