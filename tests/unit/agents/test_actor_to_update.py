"""From acting to an agent's update: the items written, and their stored states."""

import numpy as np
import pytest
import torch

from tengen.actors import EnvironmentActorConfig
from tengen.agents.dqn import Dqn
from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.agents.vtrace import Vtrace
from tengen.experience import ReplayConfig
from tengen.inference import drive
from tengen.tensors import Signature
from tests.unit.agents.agent_fakes import (
    CountingEnv,
    LeakyNet,
    NetRunner,
    TableNet,
    port_of,
    table_of,
)

NUM_ENVS = 3
# Episode lengths, some shorter and some longer than an item.
LENGTHS = (3, 11, 1, 6)
NUM_STATES = max(LENGTHS) + 1


def items_of_turns(agent, net, folder, num_turns):
    """Returns a port after some turns of acting, and the columns of all its items."""
    table = table_of(agent, agent.layout(net.signature.state), folder, NUM_ENVS)
    env = CountingEnv(NUM_ENVS, LENGTHS)
    port = port_of(agent, net, env, table)
    try:
        for version in range(num_turns):
            port.begin(version)
            drive(port, NetRunner(net, port))
        batch = table.sample(port.stats.num_items)
        columns = {name: column.copy() for name, column in batch.columns.items()}
        batch.ack()
    finally:
        table.close()
    return port, columns


@pytest.mark.parametrize(
    ("burn_in", "unroll_length", "period"),
    [(6, 10, 8), (6, 10, 10), (0, 5, 2), (9, 3, 3), (4, 4, 1), (0, 1, 1)],
)
def test_the_memory_of_r2d2_is_the_one_that_acted(
    burn_in, unroll_length, period, tmp_path
):
    agent = R2d2(
        is_duelling=False,
        sees_last_step=False,
        burn_in=burn_in,
        unroll_length=unroll_length,
        period=period,
        actor=EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=40),
    )
    # The network's memory is the number of observations in the episode so far.
    net = LeakyNet(1.0, np.ones(NUM_STATES), np.eye(NUM_STATES, 3))
    port, columns = items_of_turns(agent, net, tmp_path, num_turns=4)
    assert port.stats.num_items > 20
    tensors = {name: torch.from_numpy(column) for name, column in columns.items()}
    first = tensors["observation"][:, 0]
    # The observation counts from 0, so it equals the memory before the observation.
    assert torch.equal(tensors["state/memory"], first.float())
    assert len(first.unique()) > 3
    # After the burn-in the memory equals that of acting, also across episode ends.
    net.unrolls.clear()
    update = R2d2Update(agent, net, ReplayConfig(sampler="uniform", max_items=1))
    update.loss(net, tensors)
    memory, _, observation = net.unrolls[-1]
    assert torch.equal(memory, observation.float())
    assert torch.equal(observation, tensors["observation"][:, burn_in])


def test_every_item_of_r2d2_begins_a_period_after_the_last(tmp_path):
    agent = R2d2(
        is_duelling=False,
        sees_last_step=False,
        burn_in=4,
        unroll_length=6,
        period=5,
        actor=EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=40),
    )
    net = LeakyNet(1.0, np.ones(NUM_STATES), np.eye(NUM_STATES, 3))
    port, _ = items_of_turns(agent, net, tmp_path, num_turns=2)
    # Each copy makes 80 steps, and an item has 11.
    assert port.stats.num_items == NUM_ENVS * ((80 - 11) // 5 + 1)


class PolicyOfMemory(LeakyNet):
    """A recurrent network with a uniform policy and a value."""

    def __init__(self):
        super().__init__(1.0, np.ones(NUM_STATES), np.zeros((NUM_STATES, 3)))
        self.signature = Signature(
            inputs=self.signature.inputs,
            outputs=Vtrace().outputs_of(CountingEnv(1, LENGTHS).spec.actions),
            state=self.signature.state,
        )

    def answer(self, inputs, state):
        outputs, state = super().answer(inputs, state)
        return {"policy": outputs["q"] * 0, "value": outputs["q"][..., 0]}, state


@pytest.mark.parametrize("unroll_length", [1, 2, 7])
@pytest.mark.parametrize("has_memory", [False, True])
def test_every_transition_is_in_one_unroll(unroll_length, has_memory, tmp_path):
    agent = Vtrace(
        unroll_length=unroll_length,
        actor=EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=14),
    )
    net = TableNet(policy=np.zeros((NUM_STATES, 3)), value=np.zeros(NUM_STATES))
    if has_memory:
        net = PolicyOfMemory()
    port, columns = items_of_turns(agent, net, tmp_path, num_turns=3)
    observation = columns["observation"]
    num_items = NUM_ENVS * 42 // unroll_length
    assert observation.shape == (num_items, unroll_length + 1)
    is_reset = columns["is_reset"][:, :-1] != 0
    assert (~is_reset).sum() == port.stats.num_frames
    # A step increments the observation; a reset sets it to 0.
    before, after = observation[:, :-1], observation[:, 1:]
    assert (after == np.where(is_reset, 0, before + 1)).all()
    if has_memory:
        assert (columns["state/memory"] == observation[:, 0]).all()


def test_items_of_dqn_begin_with_a_transition(tmp_path):
    agent = Dqn(
        is_duelling=False,
        num_steps=3,
        actor=EnvironmentActorConfig(num_envs=NUM_ENVS, turn_steps=15),
    )
    net = TableNet(q=np.zeros((NUM_STATES, 3)))
    port, columns = items_of_turns(agent, net, tmp_path, num_turns=4)
    observation, is_reset = columns["observation"], columns["is_reset"] != 0
    assert observation.shape[1] == 4
    assert not is_reset[:, 0].any()
    reached = np.where(is_reset[:, :-1], 0, observation[:, :-1] + 1)
    assert (observation[:, 1:] == reached).all()
    # Every transition starts an item except those in the last 3 of 60 steps.
    stats = port.stats
    assert stats.num_frames - 3 * NUM_ENVS <= stats.num_items < stats.num_frames
