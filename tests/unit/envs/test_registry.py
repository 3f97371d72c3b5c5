from __future__ import annotations

import sys

import numpy as np
import pytest

from tengen import envs
from tengen.errors import UsageError


def test_importing_envs_imports_no_gymnasium_until_one_is_made() -> None:
    import subprocess

    code = "import sys, tengen.envs; assert 'gymnasium' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_cartpole_by_name() -> None:
    pytest.importorskip("gymnasium")
    assert "CartPole-v1" in envs.names()
    env = envs.make("CartPole-v1", 3, seed=5)
    assert env.spec == envs.EnvSpec(
        name="CartPole-v1",
        observation_shape=(4,),
        observation_dtype="float32",
        num_actions=2,
        max_episode_steps=500,
        reward_threshold=475.0,
    )
    assert envs.env_spec("CartPole-v1") == env.spec
    first = env.reset()
    step = env.step(np.array([0, 1, 0]))
    assert first.shape == step.observation.shape == (3, 4)
    assert step.reward.tolist() == [1, 1, 1]
    env.close()


def test_a_time_limit_truncates() -> None:
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


def test_unknown_names_are_refused() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(UsageError) as caught:
        envs.make("CartPol-v1", 1, 0)
    assert str(caught.value) == (
        'environment ("CartPol-v1") is not known to Gymnasium; '
        'did you mean "CartPole-v1"?'
    )
    with pytest.raises(UsageError, match="pprint_registry") as caught:
        envs.make("qqq", 1, 0)
    assert len(str(caught.value)) < 160


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Pendulum-v1", r"action space \(Box\(.*\)\) of Pendulum-v1 must be discrete"),
        ("Blackjack-v1", r"observation space \(Tuple\(.*must be an array of numbers"),
    ],
)
def test_spaces_that_are_not_handled_are_refused(name: str, message: str) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(UsageError, match=message):
        envs.make(name, 1, 0)


def test_a_missing_gymnasium_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert envs.names() == []
    with pytest.raises(UsageError, match=r"pip install 'gymnasium>=1\.1'"):
        envs.make("CartPole-v1", 1, 0)


def test_a_missing_dependency_of_one_environment_is_named() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from tengen.envs.gymnasium_env import GymnasiumEnv

    def make() -> None:
        raise gymnasium.error.DependencyNotInstalled("physics is not\ninstalled")

    with pytest.raises(UsageError) as caught:
        GymnasiumEnv(make, 1, 0, name="Ant")
    assert str(caught.value) == (
        'environment ("Ant") needs a package that is missing: physics is not '
        "installed; install it"
    )
