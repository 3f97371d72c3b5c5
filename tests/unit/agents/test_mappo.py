"""MAPPO: a critic with the global state, a policy without it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import envs, games, losses
from tengen.agents.mappo import Mappo
from tengen.experience import ReplayConfig
from tengen.nets import MlpConfig
from tengen.nets.modules.standard import Standard
from tests.unit.agents.agent_fakes import acted_in_team, net_of

NUM_COPIES, NUM_AGENTS = 2, 3
TASK = "tests.team_environments:Scripted"
AGENT = Mappo(unroll_length=8, num_epochs=1, num_minibatches=1, uses_vtrace=False)


@pytest.fixture
def made(tmp_path):
    """A network, its update, and items of acting in ``Scripted``."""
    return learner_of(tmp_path, MlpConfig(num_units=8))


def learner_of(folder, config):
    games.allow(TASK)
    torch.manual_seed(0)
    env = envs.make(TASK, NUM_COPIES, 0)
    net = net_of(AGENT, env.spec, config)
    _, _, items = acted_in_team(AGENT, env, net, folder, 3)
    return net, AGENT.make_update(TASK, net, ReplayConfig()), items


def test_the_policy_needs_no_global_state(made):
    net, update, items = made
    assert "global_state" not in net.signature.inputs
    assert set(net.signature.outputs) == {"policy"}
    assert "global_state" in update.critic.signature.inputs
    assert items["global_state"].shape[-1] == 2 * NUM_AGENTS


def test_each_agent_s_row_has_the_state_of_its_copy(made):
    _, _, items = made
    # Without ``state()`` the state is all agents' observations: an agent's own is in
    # its place, and zero if it is absent.
    number = items["agent_id"].long().argmax(-1)
    every = items["global_state"].unflatten(-1, (NUM_AGENTS, 2))
    own = every.gather(2, number[..., None, None].expand(-1, -1, 1, 2))[:, :, 0]
    assert torch.equal(own, items["observation"])


def test_targets_are_those_of_the_critic(made):
    net, update, items = made
    rows = next(iter(update.minibatches(net, dict(items))))
    # The same batch again changes neither the mean nor the deviation of its state.
    seen = update.scaled(dict(items))
    names = [*net.signature.inputs, "global_state"]
    inputs = {name: seen[name].flatten(0, 1) for name in names}
    with torch.no_grad():
        value = update.critic.answer(inputs, {})[0]["value"]
    value = value.unflatten(0, items["reward"].shape).T
    steps = {
        n: c[:, :-1].T
        for n, c in seen.items()
        if c.dim() == 2 and n in ("reward", "terminated", "is_reset")
    }
    # The scale of rewards is 1 before the first batch and moves little with one.
    wanted = losses.gae_targets(
        v=value,
        reward=steps["reward"],
        terminated=steps["terminated"],
        is_reset=steps["is_reset"],
        discount=AGENT.discount,
        trace_lambda=AGENT.trace_lambda,
        ratio=None,
    )
    is_live = steps["is_reset"] == 0
    assert len(rows["action"]) == is_live.sum()
    ours = torch.sort(rows["behaviour_value"].flatten()).values
    assert torch.allclose(ours, torch.sort(value[:-1][is_live]).values, atol=1e-5)
    ours = torch.sort(rows["returns"].flatten()).values
    assert torch.allclose(ours, torch.sort(wanted.returns[is_live]).values, atol=0.05)


def test_absent_agents_have_no_part_in_the_losses(made):
    net, update, items = made
    torch.manual_seed(0)
    one = [update.loss(net, rows).loss for rows in update.minibatches(net, dict(items))]
    is_absent = (items["is_reset"] != 0) & (items["observation"] == 0).all(-1)
    assert is_absent[:, :-1].any()
    changed = items["observation"].clone()
    changed[is_absent] = 50.0
    closing = torch.zeros_like(is_absent)
    closing[:, -1] = True  # values of a closing step are targets of the step before
    changed[closing] = items["observation"][closing]
    again = AGENT.make_update(TASK, net, ReplayConfig())
    again.load_state(AGENT.make_update(TASK, net, ReplayConfig()).state())
    again.critic.load_state_dict(update.critic.state_dict())
    torch.manual_seed(0)
    batch = {**items, "observation": changed}
    other = [again.loss(net, rows).loss for rows in again.minibatches(net, batch)]
    assert one[0].item() == pytest.approx(other[0].item(), abs=1e-6)


def test_the_critic_learns_and_is_in_the_checkpoint(made):
    net, update, items = made
    rows = next(iter(update.minibatches(net, dict(items))))
    update.loss(net, rows).loss.backward()
    weights = update.parameters()
    assert len(weights) == len(list(update.critic.parameters())) > 0
    assert all(weight.grad is not None for weight in weights)
    other = AGENT.make_update(TASK, net, ReplayConfig())
    other.load_state(update.state())
    for ours, theirs in zip(other.parameters(), weights, strict=True):
        assert torch.equal(ours, theirs)


def test_the_critic_has_no_memory(tmp_path):
    config = MlpConfig(num_units=8, lstm_units=4)
    net, update, _ = learner_of(tmp_path, config)
    assert net.signature.state
    assert not update.critic.signature.state


def test_statistics_of_the_state_need_no_item_of_the_first_agent(made):
    _, update, items = made
    is_other = items["agent_id"][:, 0, 0] == 0
    rows = {name: column[is_other] for name, column in items.items()}
    update.scaled(rows)
    assert update.standard.num_rows.item() == rows["reward"].numel() > 0


def test_each_row_of_a_present_agent_counts_once_for_the_critic(tmp_path):
    net, update, items = learner_of(tmp_path, MlpConfig(num_units=8, standardizes=True))
    for rows in update.minibatches(net, dict(items)):
        update.loss(net.train(), rows)
    is_live = items["is_reset"] == 0
    is_counted = is_live.clone()
    is_counted[:, 1:] |= is_live[:, :-1]
    is_counted[:, -1] = is_live[:, -2]
    found = [m for m in update.critic.modules() if isinstance(m, Standard)]
    assert [m.num_rows.item() for m in found] == [is_counted.sum().item()]


def test_the_unit_of_the_state_does_not_matter(made):
    """Mean and deviation are those of all rows, each counted once."""
    net, update, items = made
    states = update.scaled(dict(items))["global_state"]
    assert update.standard.num_rows.item() == items["reward"].numel()
    assert states.mean((0, 1)).abs().max() < 0.1
    assert states.abs().max() < 10
    other = AGENT.make_update(TASK, net, ReplayConfig())
    large = {**items, "global_state": 3000.0 * items["global_state"] + 500.0}
    scaled = other.scaled(large)["global_state"]
    torch.testing.assert_close(scaled, states, rtol=0, atol=0.01)
    again = AGENT.make_update(TASK, net, ReplayConfig())
    again.load_state(other.state())
    assert torch.equal(again.standard.total, other.standard.total)


class Two:
    """A group of two learners with identical items."""

    size = 2

    def gather(self, values):
        return np.array([values, values])

    def gather_rows(self, rows):
        return torch.cat([rows, rows])


def test_several_learners_have_the_statistics_of_one(made):
    net, update, items = made
    update.group = Two()
    other = AGENT.make_update(TASK, net, ReplayConfig())
    alone = other.scaled({n: torch.cat([c, c]) for n, c in items.items()})
    shared = update.scaled(dict(items))
    half = len(items["reward"])
    assert torch.equal(shared["global_state"], alone["global_state"][:half])
