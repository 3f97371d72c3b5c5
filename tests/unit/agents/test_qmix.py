"""QMIX and VDN: the block of a team, the loss against a slow reference, targets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from gymnasium import spaces

from tengen import games
from tengen.actors import IS_PRESENT
from tengen.agents.qmix import Qmix
from tengen.agents.vdn import Vdn
from tengen.envs.parallel_env import ParallelEnv
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.nets import MlpConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.team_environments import MaskedTeam, Screens, Scripted
from tests.unit.agents.agent_fakes import acted_in_team, net_of

NUM_COPIES, DISCOUNT = 2, 0.9
TRUNCATED = ((5, "a"), (5, "c"))


def acted(agent, env, folder, num_turns=2, **settings):
    """Returns a network, and all items of its acting in an environment."""
    torch.manual_seed(0)
    net = net_of(agent, env.spec, MlpConfig(num_units=8, **settings))
    port, told, columns = acted_in_team(agent, env, net, folder, num_turns)
    assert (port.stats.num_frames, port.stats.num_episodes) == (
        told["num_rows"],
        told["num_episodes"],
    )
    return net, columns


def env_of(kind=Scripted, **options):
    return ParallelEnv(lambda: kind(**options), NUM_COPIES, 0, name="team")


def test_a_step_of_a_team(tmp_path):
    agent = Qmix(unroll_length=12, period=12)
    _, columns = acted(agent, env_of(), tmp_path)
    first = {name: column[0, :12] for name, column in columns.items()}
    assert first["observation"].shape == (12, 3, 2)
    assert first["action"].shape == (12, 3)
    assert first["global_state"].shape == (12, 6)
    # The mean over those that acted: of 1 and 2, 1 and 2, 2 and 3, 3, 1 and 3.
    rewards = [1.5, 1.5, 2.5, 3, 2, 0] * 2
    assert first["reward"].tolist() == pytest.approx(rewards)
    assert first["is_reset"].tolist() == [0, 0, 0, 0, 0, 1] * 2
    assert first["terminated"].tolist() == [0, 0, 0, 0, 1, 0] * 2
    present = [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1], [0, 0, 0]]
    assert first[IS_PRESENT].tolist() == present * 2


def test_agents_are_present_at_the_last_observation_of_a_truncated_episode(tmp_path):
    agent = Qmix(unroll_length=12, period=12)
    _, columns = acted(agent, env_of(cuts=TRUNCATED[:1]), tmp_path)
    assert columns["truncated"][0, 4] == 1
    assert columns["terminated"][0, 4] == 0
    assert columns[IS_PRESENT][0, 5].tolist() == [1, 0, 0]


def reference_loss(agent, net, target, mixers, columns):
    """Returns the loss, computed agent by agent and step by step."""
    num_items, num_steps, num_agents = columns["action"].shape

    def q_of(one, item):
        """Q values ``[T, n, A]``, with a recurrent state that is zero after absence."""
        q = []
        for number in range(num_agents):
            state = {
                name: columns[f"state/{name}"][item, number][None]
                for name in net.signature.state
            }
            rows = []
            for t in range(num_steps):
                inputs = {
                    name: columns[name][item, t, number][None]
                    for name in net.signature.inputs
                }
                outputs, state = one.answer(inputs, state)
                rows.append(outputs["q"][0])
                is_absent = not columns[IS_PRESENT][item, t, number]
                if columns["is_reset"][item, t] or is_absent:
                    state = {name: torch.zeros_like(s) for name, s in state.items()}
            q.append(torch.stack(rows))
        return torch.stack(q, 1)

    total = 0.0
    for item in range(num_items):
        q = q_of(net, item)
        with torch.no_grad():
            q_target = q_of(target, item)
        for t in range(agent.burn_in, num_steps - 1):
            if columns["is_reset"][item, t]:
                continue
            taken = torch.stack(
                [
                    q[t, i, columns["action"][item, t, i]]
                    if columns[IS_PRESENT][item, t, i]
                    else torch.tensor(0.0)
                    for i in range(num_agents)
                ]
            )
            best = torch.stack(
                [
                    q_target[t + 1, i, q[t + 1, i].argmax()]
                    if columns[IS_PRESENT][item, t + 1, i]
                    else torch.tensor(0.0)
                    for i in range(num_agents)
                ]
            )
            value, reached = taken.sum(), best.sum()
            if mixers is not None:
                value = mixers[0](taken, columns["global_state"][item, t])
                reached = mixers[1](best, columns["global_state"][item, t + 1])
            aim = columns["reward"][item, t]
            if not columns["terminated"][item, t]:
                aim = aim + DISCOUNT * reached.detach()
            total = total + 0.5 * (aim - value) ** 2
    return total / (num_items * (num_steps - 1 - agent.burn_in))


@pytest.mark.parametrize("kind", [Qmix, Vdn])
@pytest.mark.parametrize("cuts", [(), TRUNCATED])
@pytest.mark.parametrize(("lstm_units", "burn_in"), [(0, 0), (4, 0), (4, 3)])
def test_the_loss_is_that_of_the_reference(kind, cuts, lstm_units, burn_in, tmp_path):
    agent = kind(
        unroll_length=8, period=4, burn_in=burn_in, discount=DISCOUNT, epsilon=1.0
    )
    env = env_of(cuts=cuts)
    net, columns = acted(agent, env, tmp_path, 6, lstm_units=lstm_units)
    task = "tests.team_environments:Scripted"
    games.allow(task)
    update = agent.make_update(task, net, ReplayConfig())
    torch.manual_seed(1)
    with torch.no_grad():  # the target differs from the network
        for weight in update.target.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    mixers = None
    if kind is Qmix:
        for weight in update.target_mixer.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        mixers = update.mixer, update.target_mixer
    loss = update.loss(net, columns).loss
    wanted = reference_loss(agent, net, update.target, mixers, columns)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-4)
    if not burn_in:  # the reference has no gradient limit at the burn-in
        weights = list(net.parameters())
        gradients = torch.autograd.grad(loss, weights)
        wanted = torch.autograd.grad(wanted, weights)
        for ours, theirs in zip(gradients, wanted, strict=True):
            assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-6)


def test_the_team_s_value_increases_with_each_agent_s():
    from tengen.nets.modules.critics import Mixer

    torch.manual_seed(0)
    mixer = Mixer(3, 5)
    q = torch.randn(200, 3, requires_grad=True)
    total = mixer(q, 10 * torch.randn(200, 5))
    (slope,) = torch.autograd.grad(total.sum(), q)
    assert (slope >= 0).all()
    assert (slope > 0).any()


@pytest.mark.parametrize("kind", [Qmix, Vdn])
def test_masked_actions_are_neither_taken_nor_in_targets(kind, tmp_path):
    """tianshou #309 masked only the actions of the first of two states.

    In the QMIX of RLlib #4693 and smac #12 values of -1e7 entered the targets.
    """
    agent = kind(unroll_length=6, period=6, epsilon=0.5)
    net, columns = acted(agent, env_of(MaskedTeam), tmp_path)
    task = "tests.team_environments:MaskedTeam"
    games.allow(task)
    update = agent.make_update(task, net, ReplayConfig())
    legal = columns["action_mask"].bool()
    taken = legal.gather(-1, columns["action"][..., None])[..., 0]
    assert taken[columns["is_reset"] == 0].all()

    class Huge(torch.nn.Module):
        """The network, with Q values of a million for illegal actions."""

        signature = net.signature
        training = False

        def unroll(self, inputs, state, is_first):
            outputs, state = net.unroll(inputs, state, is_first)
            mask = columns["action_mask"].permute(1, 0, 2, 3).flatten(1, 2).bool()
            return {"q": outputs["q"].masked_fill(~mask, 1e6)}, state

    plain = update.loss(net, columns).loss
    update.target = Huge()
    huge = update.loss(Huge(), columns).loss
    assert plain.item() < 1e3
    assert huge.item() == pytest.approx(plain.item())


def test_targets_change_with_their_period():
    agent = Qmix(target_period=3)
    task = "tests.team_environments:TwoStep"
    games.allow(task)
    net = MlpConfig().build(agent.signature(task))
    update = agent.make_update(task, net, ReplayConfig())
    before = update.target_mixer.first_bias.weight.clone()
    with torch.no_grad():
        for weight in (*net.parameters(), *update.parameters()):
            weight.add_(1.0)
    for number in (1, 2):
        update.stepped(net, number, {})
        assert torch.equal(update.target_mixer.first_bias.weight, before)
    update.stepped(net, 3, {})
    assert torch.equal(update.target_mixer.first_bias.weight, before + 1.0)
    pairs = zip(update.target.parameters(), net.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_the_unit_of_the_state_does_not_matter(tmp_path):
    agent = Qmix(unroll_length=8, period=8, burn_in=2, target_period=1)
    net, columns = acted(agent, env_of(), tmp_path, 6)
    large = {**columns, "global_state": 3000.0 * columns["global_state"] + 500.0}
    task = "tests.team_environments:Scripted"
    games.allow(task)
    found = []
    for items in (columns, large):
        torch.manual_seed(0)
        update = agent.make_update(task, net, ReplayConfig())
        (rows,) = update.minibatches(net, items)
        assert rows["global_state"].abs().max() <= 10
        # The burn-in has no loss and does not count.
        assert update.standard.num_rows.item() == rows["reward"][:, 2:].numel()
        found.append(update.loss(net, rows).loss.item())
        # A checkpoint continues with the statistics.
        other = agent.make_update(task, net, ReplayConfig())
        other.load_state(update.state())
        again = {n: c[:1] for n, c in items.items()}
        (ours,), (theirs,) = (one.minibatches(net, again) for one in (update, other))
        assert torch.equal(ours["global_state"], theirs["global_state"])
        assert other.loss(net, rows).loss.item() == update.loss(net, rows).loss.item()
    assert found[1] == pytest.approx(found[0], rel=0.02)


def test_images_are_not_stacked():
    class Grey(Screens):
        def observation_space(self, agent):
            return spaces.Box(0, 255, (84, 84, 1), np.uint8)

    agent, spec = Qmix(), env_of(Grey).spec
    net = agent.default_net(spec)
    assert net.num_frames == 1
    agent.layout_of(net_of(agent, spec, net).signature)


def test_only_qmix_stores_the_global_state():
    spec = env_of().spec
    assert "global_state" in Qmix().columns(spec)
    assert "global_state" not in Vdn().columns(spec)


def test_refusals():
    module = "tests.team_environments"
    for name in ("Scripted", "TwoTeams", "Screens"):
        games.allow(f"{module}:{name}")
    assert not Qmix.refusal(f"{module}:Scripted")
    assert "team" in Qmix.refusal(f"{module}:TwoTeams")
    assert "agents" in Vdn.refusal("CartPole-v1")
    assert "state" in Qmix.refusal(f"{module}:Screens")
    assert not Vdn.refusal(f"{module}:Screens")
    state = {"frames/observation": TensorSpec(shape=(3, 1, 8, 8))}
    wanted = Signature(
        inputs={"agent_id": TensorSpec(shape=(3,))},
        outputs={"q": TensorSpec(shape=(3,))},
        state=state,
    )
    with refused(UsageError, "net.num_frames (4)"):
        Vdn().layout_of(wanted)
