"""Agents with choices never take an illegal one, nor learn from its value."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("gymnasium")

from gymnasium import spaces

from tengen import games
from tengen.agents import Agent, EnvironmentAgent
from tengen.envs import ActionSpec
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.evaluation import Acting
from tengen.experience import ReplayConfig, StepTable
from tengen.inference import drive
from tengen.recipes import make_config
from tengen.store import Column
from tengen.tensors import ACTION_MASK, Signature
from tests.masked_environments import DictDoors
from tests.unit.agents.agent_fakes import NetRunner, port_of

TASK = "tests.masked_environments:DictDoors"
NUM_ENVS, OPEN = 4, [2, 5]
CLOSED = [0, 1, 3, 4, 6, 7]
KINDS = [
    kind
    for kind, agent in Agent.kinds().items()
    if issubclass(agent, EnvironmentAgent)
    and not agent.needs_agents
    and not agent.refusal_of(ActionSpec(num_choices=(8,)))
]


class StrictDoors(DictDoors):
    """Doors 2 and 5 are always open; raises if another one is chosen."""

    def step(self, action):
        assert action in OPEN
        return super().step(action)

    def _drawn(self):
        observation, info = super()._drawn()
        self._mask[:] = 0
        self._mask[OPEN] = 1
        return observation, info


def items_of(agent, net, env, folder):
    """Returns the columns of all items of four turns of acting."""
    columns = {
        name: Column(dtype=tensor.dtype, shape=tensor.shape)
        for name, tensor in agent.columns(env.spec).items()
    }
    table = StepTable(
        folder / "steps",
        columns,
        agent.layout(net.signature.state),
        ReplayConfig(sampler="fifo", max_items=10_000),
        seed=1,
        num_slots=NUM_ENVS,
        batch_size=3_000,
    )
    try:
        port = port_of(agent, net, env, table)
        for version in range(4):
            port.begin(version)
            drive(port, NetRunner(net, port))
        batch = table.sample(port.stats.num_items)
        drawn = {
            name: torch.from_numpy(np.array(column))
            for name, column in batch.columns.items()
        }
        batch.ack()
    finally:
        table.close()
    return drawn


@pytest.fixture(params=KINDS)
def made(request, tmp_path):
    """An agent, its network, its config, and items from its acting in strict doors."""
    games.allow(TASK)
    config = make_config(TASK, request.param, None)
    agent = config.agent
    torch.manual_seed(0)
    net = config.net.build(agent.signature(TASK))
    with torch.no_grad():
        for layer in last_layers(net):  # every closed door seems best
            layer.bias[CLOSED] = 1e6
    env = GymnasiumEnv(StrictDoors, NUM_ENVS, 0, name=TASK)
    return config, net, items_of(agent, net, env, tmp_path)


class ShownDoors(DictDoors):
    """The observation is the mask, which is another one at each step."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict(
            dict.fromkeys(("observation", "action_mask"), spaces.MultiBinary(8))
        )

    def _drawn(self):
        observation, info = super()._drawn()
        return {**observation, "observation": observation["action_mask"]}, info


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_is_stored_with_its_observation(kind, tmp_path):
    games.allow(TASK)
    env = GymnasiumEnv(ShownDoors, NUM_ENVS, 0, name=TASK)
    agent = make_config(TASK, kind, None).agent
    inputs = {**env.spec.observations, **agent.inputs_of(env.spec)}
    wanted = Signature(inputs=inputs, outputs=agent.outputs_of(env.spec.actions))
    net = agent.default_net(env.spec).build(wanted)
    columns = items_of(agent, net, env, tmp_path)
    shown = columns["observation/observation"]
    assert (columns[ACTION_MASK] != 0).eq(shown != 0).all()
    assert len(shown.flatten(0, 1).unique(dim=0)) > 10


def last_layers(net):
    return [
        layer
        for layer in net.modules()
        if isinstance(layer, nn.Linear) and layer.out_features == 8
    ]


def test_no_illegal_action_is_taken_or_learned_from(made):
    config, net, columns = made
    mask, action = columns[ACTION_MASK], columns["action"]
    is_live = columns["is_reset"] == 0
    is_live[:, -1] = False  # a closing step has no action
    assert is_live.sum() > 50
    assert mask[is_live].gather(-1, action[is_live][..., None]).all()
    update = config.agent.make_update(TASK, net, config.store)
    losses = []
    for bias in (1e6, -3.0):
        with torch.no_grad():
            for layer in last_layers(net):
                layer.bias[CLOSED] = bias
            for layer in last_layers(getattr(update, "target", nn.Identity())):
                layer.bias[CLOSED] = bias
        net.zero_grad()
        torch.manual_seed(0)
        batch = next(iter(update.minibatches(net, dict(columns))))
        loss = update.loss(net, batch).loss
        loss.backward()
        losses.append(loss.item())
        for layer in last_layers(net):
            assert layer.weight.grad is not None
            assert not layer.weight.grad[CLOSED].any()
            assert layer.weight.grad[OPEN].any()
    assert np.isfinite(losses).all()
    assert losses[0] == losses[1]


@pytest.mark.parametrize("mode", ["greedy", "sampled", "epsilon"])
def test_evaluation_takes_no_illegal_action(made, mode):
    config, net, _ = made
    agent = config.agent
    if mode == "sampled" and not agent.draws_actions:
        pytest.skip("it samples only with epsilon")
    from tengen.evaluation import play_episodes
    from tengen.inference.torch_backend import TorchBackend

    env = GymnasiumEnv(StrictDoors, NUM_ENVS, 0, name=TASK)
    report = play_episodes(
        env,
        agent,
        TorchBackend(net, precision="fp32"),
        8,
        model="m",
        acting=Acting(mode=mode, epsilon=0.5),
    )
    assert report.lengths == (10,) * 8
