"""Default networks, chosen by the observation and by the task."""

import dataclasses

import numpy as np
import pytest

from tengen.agents import EnvironmentAgent
from tengen.agents.a2c import A2c
from tengen.agents.bases.defaults import net_for
from tengen.agents.dqn import Dqn
from tengen.agents.iqn import Iqn
from tengen.agents.ppo import Ppo
from tengen.agents.r2d2 import R2d2
from tengen.agents.sac import Sac
from tengen.agents.vtrace import Vtrace
from tengen.config import from_dict, to_dict
from tengen.envs import ActionSpec, EnvSpec
from tengen.games import allow
from tengen.nets import MlpConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.nature import NatureConfig
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.tensors import SCALED_POLICY, Signature, TensorSpec


def spec(*shape, dtype="uint8"):
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


def test_one_grey_screen_is_four():
    assert net_for(spec(1, 84, 84)) == NatureConfig(num_frames=4)
    assert net_for(spec(3, 72, 96)) == NatureConfig(num_frames=1)
    assert net_for(spec(5)) == MlpConfig()


def test_hard_tasks_of_places_are_seen_by_four_sections_and_four_pictures():
    assert net_for(FOOTBALL) == NatureConfig(num_frames=1)
    hard = net_for(dataclasses.replace(FOOTBALL, is_hard=True))
    assert hard == ImpalaConfig(channels=(16, 32, 32, 32), num_frames=4)


def test_dqn_learns_boards_slowly_from_uniform_replay():
    board = spec(4, 10, 10, dtype="bool")
    agent = Dqn().for_environment(board)
    assert (agent.target_period, agent.num_steps) == (1000, 1)
    assert agent.default_store(board).sampler == "uniform"
    assert agent.default_learner(board).optimizer.learning_rate == 1e-4
    screen = Dqn().for_environment(spec(1, 84, 84))
    assert (screen.target_period, screen.num_steps) == (2000, 3)
    assert Dqn().for_environment(spec(4)) == Dqn()


def test_pixels_of_floats_are_divided_by_their_bound():
    bytes_of_floats = dataclasses.replace(
        spec(1, 84, 84, dtype="float32"), pixel_scales={"observation": 255.0}
    )
    assert net_for(bytes_of_floats) == NatureConfig(num_frames=4, pixel_scale=255.0)


def test_each_image_is_divided_by_its_own_bound():
    shape = TensorSpec(shape=(64, 64, 3))
    depth = TensorSpec(shape=(64, 64, 1))
    camera = dataclasses.replace(
        spec(3),
        observations={"observation/depth": depth, "observation/rgb": shape},
        pixel_scales={"observation/depth": 10_000.0},
    )
    assert net_for(camera) == NatureConfig(pixel_scale=(10_000.0, 1.0))
    assert from_dict(NatureConfig, to_dict(net_for(camera))) == net_for(camera)


@pytest.mark.parametrize("written", [{}, {"pixel_scale": 255.0}])
def test_a_network_of_before_has_one_scale(written):
    net = from_dict(NatureConfig, {"kind": "nature", **written})
    assert net.pixel_scale == written.get("pixel_scale", 1.0)
    assert not net.standardizes


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_actions_with_bounds_are_scaled_in_new_runs(kind):
    bounded = ActionSpec(shape=(2,), low=(0.0, -np.inf), high=(1000.0, 1.0))
    free = ActionSpec(shape=(1,), low=(-np.inf,), high=(np.inf,))
    robot = dataclasses.replace(spec(9, dtype="float32"), actions=bounded)
    wide = ActionSpec(shape=(2,), low=(0.0, -1.0), high=(1000.0, 1.0))
    assert kind(scales_actions=True).scale_of(wide) == ((500.0, 0.0), (250.0, 1.0))
    assert kind().scale_of(wide) is kind().scale_of(dataclasses.replace(wide))
    agent = kind().for_environment(robot)
    assert agent.scales_actions
    assert agent.outputs_of(bounded) == {
        SCALED_POLICY: TensorSpec(shape=(4,)),
        "value": TensorSpec(),
    }
    drawn = agent.act_greedily({SCALED_POLICY: np.zeros((1, 4), np.float32)}, bounded)
    assert drawn["action"].tolist() == [[500.0, 0.0]]
    near = ActionSpec(shape=(2,), low=(-1.0, -3.0), high=(1.0, 3.0))
    for other in (free, near, ActionSpec(num_choices=(3,))):
        task = dataclasses.replace(robot, actions=other)
        assert not kind().for_environment(task).scales_actions


@pytest.mark.parametrize("kind", ["a2c", "ppo", "vtrace"])
def test_a_run_of_before_goes_on_in_the_units_of_its_environment(kind):
    pytest.importorskip("gymnasium")
    allow("tests.environments:ReachFar")
    config = make_config("tests.environments:ReachFar", kind, None)
    written = to_dict(config)
    assert written["agent"].pop("scales_actions") is True
    agent = from_dict(RunConfig, written).agent
    assert "policy" in agent.signature(config.task).outputs


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_a_model_of_before_acts_in_the_units_of_its_environment(kind):
    bounded = ActionSpec(shape=(1,), low=(0.0,), high=(1000.0,))
    inputs = {"observation": TensorSpec(shape=(3,))}
    for agent, greedy in ((kind(), 3.0), (kind(scales_actions=True), 1250.0)):
        signature = Signature(inputs=inputs, outputs=agent.outputs_of(bounded))
        found = EnvironmentAgent.of_model(agent.kind, signature, "a model")
        outputs = {found.policy_output: np.array([[3.0, 0.0]], np.float32)}
        assert found.act_greedily(outputs, bounded)["action"].tolist() == [[greedy]]


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_policies_remember_where_a_task_is_partial(kind):
    for task, net in ((LAB, ImpalaConfig(lstm_units=256)), (RECALL, MlpConfig())):
        agent = kind().for_environment(task)
        assert agent.sees_last_step
        found = agent.default_net(task)
        assert found == dataclasses.replace(net, lstm_units=found.lstm_units)
        assert found.lstm_units == (256 if task is LAB else 64)
    for task in (FOOTBALL, spec(9)):
        assert not kind().for_environment(task).sees_last_step
        assert kind().default_net(task).lstm_units == 0


def test_those_of_values_keep_theirs():
    assert R2d2().default_net(LAB).lstm_units > 0
    assert Dqn().default_net(LAB) == ImpalaConfig()


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c])
def test_policies_of_real_numbers_see_units(kind):
    robot = dataclasses.replace(
        spec(11, dtype="float32"),
        actions=ActionSpec(shape=(1,), low=(-1.0,), high=(1.0,)),
    )
    assert kind().default_net(robot) == MlpConfig(standardizes=True)
    large = dataclasses.replace(spec(9, dtype="float32"), has_large_vectors=True)
    assert kind().default_net(large) == MlpConfig(standardizes=True)
    small = dataclasses.replace(large, has_large_vectors=False)
    assert kind().default_net(small) == MlpConfig()
    assert kind().default_net(spec(11)) == MlpConfig()
    assert Dqn().default_net(spec(11)) == MlpConfig()


@pytest.mark.parametrize("kind", [Vtrace, Ppo, A2c, Dqn, Iqn, R2d2, Sac])
@pytest.mark.parametrize("has_image", [False, True])
def test_every_agent_standardizes_large_vectors(kind, has_image):
    observations = {"observation/speed": TensorSpec(shape=(2,))}
    if has_image:
        screen = TensorSpec(dtype="uint8", shape=(84, 84, 3))
        observations["observation/rgb"] = screen
    task = dataclasses.replace(spec(3), observations=observations)
    for is_large in (False, True):
        seen = dataclasses.replace(task, has_large_vectors=is_large)
        net = kind().default_net(seen)
        assert net.standardizes == is_large
