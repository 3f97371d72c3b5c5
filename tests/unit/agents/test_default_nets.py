"""Networks that nobody chose: by what is observed, and by what the task asks."""

from __future__ import annotations

import dataclasses

import pytest

from tengen.agents.a2c import A2c
from tengen.agents.default_nets import net_for
from tengen.agents.dqn import Dqn
from tengen.agents.ppo import Ppo
from tengen.agents.r2d2 import R2d2
from tengen.agents.vtrace import Vtrace
from tengen.envs import ActionSpec, EnvSpec
from tengen.nets import MlpConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import TensorSpec


def spec(*shape: int, dtype: str = "uint8") -> EnvSpec:
    return EnvSpec(
        name="task",
        observations={"observation": TensorSpec(dtype=dtype, shape=shape)},
        actions=ActionSpec(num_choices=(3,)),
        max_episode_steps=None,
        reward_threshold=None,
    )


FOOTBALL = spec(4, 72, 96, dtype="bool")
LAB = dataclasses.replace(spec(3, 72, 96), is_hard=True, is_partial=True)
RECALL = dataclasses.replace(spec(9, dtype="bool"), is_partial=True)


def test_one_grey_screen_is_four() -> None:
    assert net_for(spec(1, 84, 84)) == NatureConfig(num_frames=4)
    assert net_for(spec(3, 72, 96)) == NatureConfig(num_frames=1)
    assert net_for(spec(5)) == MlpConfig()


def test_hard_tasks_of_places_are_seen_by_four_sections_and_four_pictures() -> None:
    assert net_for(FOOTBALL) == NatureConfig(num_frames=1)
    hard = net_for(dataclasses.replace(FOOTBALL, is_hard=True))
    assert hard == ImpalaConfig(channels=(16, 32, 32, 32), num_frames=4)


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_policies_remember_where_a_task_is_partial(kind: type[Ppo]) -> None:
    for task, net in ((LAB, ImpalaConfig(lstm_units=256)), (RECALL, MlpConfig())):
        agent = kind().for_environment(task)
        assert agent.sees_last_step
        found = agent.default_net(task)
        assert found == dataclasses.replace(net, lstm_units=found.lstm_units)
        assert found.lstm_units == (256 if task is LAB else 64)
    for task in (FOOTBALL, spec(9)):
        assert not kind().for_environment(task).sees_last_step
        assert kind().default_net(task).lstm_units == 0


def test_those_of_values_keep_theirs() -> None:
    assert R2d2().default_net(LAB).lstm_units > 0
    assert Dqn().default_net(LAB) == ImpalaConfig()


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_policies_of_real_numbers_see_units(kind: type[Ppo]) -> None:
    robot = dataclasses.replace(
        spec(11, dtype="float32"),
        actions=ActionSpec(shape=(1,), low=(-1.0,), high=(1.0,)),
    )
    assert kind().default_net(robot) == MlpConfig(standardizes=True)
    assert kind().default_net(spec(11)) == MlpConfig()
    assert Dqn().default_net(spec(11)) == MlpConfig()
