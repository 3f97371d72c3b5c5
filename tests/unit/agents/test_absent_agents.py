"""The zeros of agents that are not in the episode enter no statistics."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import envs, games
from tengen.actors import IS_PRESENT
from tengen.agents import Agent
from tengen.learners.update import Update
from tengen.nets import MlpConfig
from tengen.nets.modules.standard import RunningSums
from tests.unit.agents.agent_fakes import acted_in_team, net_of

TASK = "tests.team_environments:Scripted"
SEQUENCES = {"unroll_length": 8, "period": 8, "burn_in": 2}
# Agents by kind: settings of the agent and of the network. A DQN item begins with an
# action of the agent, so dqn, iqn and sac have no rows without an agent.
AGENTS = {
    "a2c": ({"unroll_length": 8}, {}),
    "mappo": ({"unroll_length": 8, "num_epochs": 1}, {"lstm_units": 4}),
    "ppo": ({"unroll_length": 8, "num_epochs": 1}, {"lstm_units": 4}),
    "pqn": ({"unroll_length": 8, "num_epochs": 1}, {"layer_norm": True}),
    "qmix": (SEQUENCES, {}),
    "r2d2": (SEQUENCES, {"lstm_units": 4}),
    "rnd": ({"unroll_length": 8, "num_epochs": 1}, {}),
    "vdn": (SEQUENCES, {"lstm_units": 4}),
    "vtrace": ({"unroll_length": 8}, {}),
}


def statistics_of(net, update, items):
    """Returns the statistics of all modules after a learner's use of a batch."""
    torch.manual_seed(1)
    net.train()
    for rows in update.minibatches(net, dict(items)):
        update.loss(net, rows)
    others = [m for m in vars(update).values() if isinstance(m, torch.nn.Module)]
    sums = [
        one
        for module in (net, *others)
        for one in module.modules()
        if isinstance(one, RunningSums)
    ]
    return [buffer for one in sums for buffer in one.buffers()]


@pytest.mark.parametrize("kind", AGENTS)
def test_only_what_an_agent_observed_counts(kind, tmp_path):
    games.allow(TASK)
    settings, network = AGENTS[kind]
    agent = Agent.of_kind(kind, "a test")(**settings)
    env = envs.make(TASK, 2, 0)
    config = MlpConfig(num_units=8, standardizes=True, **network)
    found = []
    for junk in (0.0, 1e6):
        torch.manual_seed(0)
        net = net_of(agent, env.spec, config)
        _, _, items = acted_in_team(agent, env, net, tmp_path / str(junk), 6)
        # Agent 0 observes zeros at the first step of an episode, the others never.
        is_zero = (items["observation"] == 0).all(-1)
        index = items["agent_id"].long().argmax(-1)
        if IS_PRESENT in items:
            is_absent = is_zero & (items[IS_PRESENT] == 0)
        else:
            is_absent = is_zero & ((items["is_reset"] != 0) | (index > 0))
        assert is_absent.any()
        items["observation"][is_absent] = junk
        update = agent.make_update(TASK, net, agent.default_store(env.spec))
        assert isinstance(update, Update)
        found.append(statistics_of(net, update, items))
    plain, spoiled = found
    assert len(plain) >= 3
    for ours, theirs in zip(plain, spoiled, strict=True):
        assert torch.equal(ours, theirs)
        assert (ours != 0).any()
