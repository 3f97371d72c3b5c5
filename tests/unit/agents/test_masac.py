"""MASAC: the loss against a slow reference, absent agents, masks, and its state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import envs, games
from tengen.agents.masac import Masac
from tengen.errors import UsageError
from tengen.experience import ReplayConfig
from tengen.losses import squashed_sample
from tengen.nets.modules.standard import Standard
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.team_environments import Leaving, MaskedTeam, Moving, Scripted
from tests.unit.agents.test_qmix import TRUNCATED, acted, env_of

DISCOUNT, TEMPERATURE = 0.9, 0.3
MODULE = "tests.team_environments"


def made(kind, folder, *, standardizes=False, **options):
    """Returns a network, its update, and items of acting in an environment."""
    task = f"{MODULE}:{kind.__name__}"
    games.allow(task)
    agent = Masac(discount=DISCOUNT, first_temperature=TEMPERATURE)
    env = env_of(kind, **options)
    net, columns = acted(agent, env, folder, standardizes=standardizes)
    update = agent.make_update(task, net, ReplayConfig())
    with torch.no_grad():
        # Random weights, because last layers start near 0 and would hide differences.
        for module in (net, update.critics, update.target):
            for weight in module.parameters():
                weight.normal_(0, 0.5)
    (batch,) = update.minibatches(net, columns)
    return net, update, batch


class Reference:
    """The losses, computed item by item and agent by agent."""

    def __init__(self, net, update, batch):
        self.net, self.update, self.batch = net, update, batch
        self.is_discrete = batch["action"].dtype == torch.int64
        self.num_agents = batch["action"].shape[2]
        self.low, self.high = np.array([-1.0, 0.0]), np.array([2.0, 0.5])

    def present(self, item, step):
        return [
            agent
            for agent in range(self.num_agents)
            if self.batch["is_present"][item, step, agent]
        ]

    def inputs(self, item, step, agent):
        names = self.net.signature.inputs
        return {n: self.batch[n][item, step, agent][None] for n in names}

    def policy(self, item, step, agent):
        """Returns log-probabilities, entropy, a sample and its encoding."""
        inputs = self.inputs(item, step, agent)
        outputs = self.net.answer(inputs, {})[0]["policy"][0]
        noise = self.batch["noise"][item, step, agent]
        if not self.is_discrete:
            action, log_prob = squashed_sample(outputs, noise)
            return log_prob, -log_prob, action, action
        legal = torch.arange(len(outputs))
        if "action_mask" in self.batch:
            legal = legal[self.batch["action_mask"][item, step, agent] != 0]
        log_policy = outputs[legal].log_softmax(0)
        entropy = -(log_policy.exp() * log_policy).sum()
        action = legal[(log_policy + noise[legal]).argmax()]
        code = torch.nn.functional.one_hot(action, len(outputs)).float()
        every = torch.full_like(outputs, -torch.inf)
        every[legal] = log_policy
        return every, entropy, action, code

    def code(self, action):
        if self.is_discrete:
            return torch.eye(3)[action]
        low, high = torch.tensor(self.low), torch.tensor(self.high)
        return ((action - low) / (high - low) * 2 - 1).float()

    def q(self, critics, item, step, agent, codes, own=None):
        """Returns Q values ``[C]``, or ``[C, A]``, with the others' encoded actions."""
        others = torch.stack(
            [
                codes[other]
                if other in codes and other != agent
                else torch.zeros_like(next(iter(codes.values())))
                for other in range(self.num_agents)
            ]
        )
        inputs = {
            **self.inputs(item, step, agent),
            "global_state": self.batch["global_state"][item, step][None],
            "other_actions": others.flatten()[None],
        }
        if own is not None:
            inputs["critic_action"] = own[None]
        return torch.stack([one.answer(inputs, {})[0]["q"][0] for one in critics.nets])

    def expected(self, q, log_policy):
        """Returns the expectation of the critics' minimum over the own action."""
        least = q.amin(0)
        if not self.is_discrete:
            return least
        weights = log_policy.exp()
        return torch.where(weights > 0, weights * least, 0.0).sum()

    def target(self, item):
        present = self.present(item, 1)
        value, entropies = torch.tensor(0.0), torch.tensor(0.0)
        policies = {agent: self.policy(item, 1, agent) for agent in present}
        codes = {agent: each[3] for agent, each in policies.items()}
        for agent in present:
            log_policy, entropy, _, code = policies[agent]
            own = None if self.is_discrete else code
            q = self.q(self.update.target, item, 1, agent, codes, own)
            value = value + self.expected(q, log_policy) / len(present)
            entropies = entropies + entropy
        reward = self.batch["reward"][item, 0]
        if self.batch["terminated"][item, 0]:
            return reward
        return reward + DISCOUNT * (value + TEMPERATURE * entropies)

    def wanted_entropy(self, log_policy):
        """Returns half of the maximum over legal actions, or minus the dimensions."""
        if not self.is_discrete:
            return -2.0
        return 0.25 * np.log(log_policy.isfinite().sum().item())

    def losses(self):
        """Returns the means of the losses of critics, policy and temperature."""
        rows = []
        for item in range(len(self.batch["reward"])):
            present = self.present(item, 0)
            assert present
            with torch.no_grad():
                target = self.target(item)
            taken = {i: self.code(self.batch["action"][item, 0, i]) for i in present}
            policies = {agent: self.policy(item, 0, agent) for agent in present}
            drawn = {agent: each[3].detach() for agent, each in policies.items()}
            of_agents = []
            for agent in present:
                own = None if self.is_discrete else taken[agent]
                q = self.q(self.update.critics, item, 0, agent, taken, own)
                if self.is_discrete:
                    q = q[:, self.batch["action"][item, 0, agent]]
                log_policy, entropy, _, code = policies[agent]
                own = None if self.is_discrete else code
                q_drawn = self.q(self.update.critics, item, 0, agent, drawn, own)
                soft = self.expected(q_drawn, log_policy) + TEMPERATURE * entropy
                critic = ((q - target) ** 2 / 2).sum()
                warmth = TEMPERATURE * (entropy - self.wanted_entropy(log_policy))
                of_agents.append(torch.stack([critic, -soft, warmth]))
            rows.append(torch.stack(of_agents).mean(0))
        return torch.stack(rows).mean(0)


CASES = [
    (Scripted, {}),
    (Scripted, {"cuts": TRUNCATED}),
    (MaskedTeam, {}),
    (Moving, {}),
]


@pytest.mark.parametrize("standardizes", [False, True])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_loss_is_that_of_the_reference(kind, options, standardizes, tmp_path):
    net, update, batch = made(kind, tmp_path, standardizes=standardizes, **options)
    if kind is not MaskedTeam:  # agents are removed and added
        assert (batch["is_present"][:, 0] == 0).any()
    found = update.loss(net.train(), batch)
    net.eval()
    critic, policy, warmth = Reference(net, update, batch).losses()
    assert found.metrics["critic_loss"].item() == pytest.approx(critic.item(), rel=1e-4)
    assert found.metrics["policy_loss"].item() == pytest.approx(policy.item(), rel=1e-4)
    total = critic + policy + warmth
    assert found.loss.item() == pytest.approx(total.item(), rel=1e-4)
    for name, part, weights in (
        ("policy_loss", policy, list(net.parameters())),
        ("critic_loss", critic, list(update.critics.parameters())),
    ):
        ours, theirs = (
            torch.autograd.grad(loss, weights, retain_graph=True)
            for loss in (found.metrics[name], part)
        )
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [Scripted, Moving])
def test_each_part_has_a_gradient_for_its_own_weights_only(kind, tmp_path):
    net, update, batch = made(kind, tmp_path)
    found = update.loss(net, batch)
    parts = {
        "policy_loss": list(net.parameters()),
        "critic_loss": list(update.critics.parameters()),
    }
    for name, (part, weights) in itertools.product(parts, parts.items()):
        gradients = torch.autograd.grad(
            found.metrics[name], weights, retain_graph=True, allow_unused=True
        )
        is_reached = any(g is not None and g.abs().sum() > 0 for g in gradients)
        assert is_reached == (name == part)
    (slope,) = torch.autograd.grad(found.loss, [update.log_temperature])
    assert slope.abs() > 0


@pytest.mark.parametrize("kind", [Scripted, Moving])
@pytest.mark.parametrize("standardizes", [False, True])
def test_absent_agents_have_no_part(kind, standardizes, tmp_path):
    net, update, batch = made(kind, tmp_path, standardizes=standardizes)
    is_absent = batch["is_present"] == 0
    # Before the last step of an episode some agents are absent, and after it all are.
    assert is_absent[:, 0].any()
    assert is_absent[:, 1].all(-1).any()
    changed = dict(batch)
    for name, value in (("observation", 50.0), ("action", 1), ("noise", 3.0)):
        changed[name] = batch[name].clone()
        changed[name][is_absent] = value
    counted = [m for m in net.modules() if isinstance(m, Standard)]
    for module in counted:  # the rows of acting
        module.load_state_dict({n: 0 * t for n, t in module.state_dict().items()})
    one, other = (update.loss(net.train(), rows) for rows in (batch, changed))
    num_present = (~is_absent[:, 0]).sum().item()
    assert all(module.num_rows.item() == 2 * num_present for module in counted)
    # The statistics of both batches are equal, so they did not move.
    assert one.loss.item() == pytest.approx(other.loss.item(), rel=1e-4)


def test_masked_actions_are_neither_taken_nor_in_the_losses(tmp_path):
    net, update, batch = made(MaskedTeam, tmp_path)
    legal = batch["action_mask"] != 0
    taken = legal.gather(-1, batch["action"][..., None])[..., 0]
    assert taken[batch["is_reset"] == 0].all()
    plain = update.loss(net, batch)
    steps = iter((0, 1))

    class Huge(torch.nn.Module):
        """The network, with logits of a million for illegal actions."""

        signature = net.signature

        def answer(self, inputs, state):
            outputs, state = net.answer(inputs, state)
            mask = legal[:, next(steps)].flatten(0, 1)
            return {"policy": outputs["policy"].masked_fill(~mask, 1e6)}, state

    huge = update.loss(Huge(), batch)
    assert huge.loss.item() == pytest.approx(plain.loss.item(), rel=1e-5)
    assert plain.metrics["entropy"] <= np.log(2)


@pytest.mark.parametrize("kind", [MaskedTeam, Leaving])
def test_the_gradient_with_masks_is_finite(kind, tmp_path):
    net, update, batch = made(kind, tmp_path)
    assert kind is MaskedTeam or (batch["is_present"][:, 0] == 0).any()
    # The mask of an absent agent may have no choice.
    is_absent = batch["is_present"] == 0
    batch["action_mask"] = batch["action_mask"].masked_fill(is_absent[..., None], 0)
    loss = update.loss(net, batch).loss
    weights = [*net.parameters(), *update.parameters()]
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    assert all(g.isfinite().all() for g in gradients if g is not None)


def test_samples_of_the_noise_are_those_of_the_policy(tmp_path):
    net, update, batch = made(Scripted, tmp_path)
    torch.manual_seed(3)
    many = {
        name: column[:1].expand(4000, *column.shape[1:])
        for name, column in batch.items()
    }
    (drawn,) = update.minibatches(net, many)
    policy = torch.tensor([0.7, 0.1, 0.2])
    chosen = (policy.log() + drawn["noise"][:, 0, 0]).argmax(-1)
    shares = torch.bincount(chosen, minlength=3) / 4000
    assert torch.allclose(shares, policy, atol=0.03)


def test_the_state_of_the_update_is_complete(tmp_path):
    net, update, batch = made(Scripted, tmp_path, standardizes=True)
    assert update.standard.num_rows.item() == len(batch["reward"])
    update.move_targets(net)
    kept = {name: tensor.clone() for name, tensor in update.state().items()}
    (tmp_path / "again").mkdir()
    _, other, _ = made(Scripted, tmp_path / "again", standardizes=True)
    with torch.no_grad():
        for tensor in other.state().values():
            tensor.add_(1)
    other.load_state(kept)
    for name, tensor in other.state().items():
        assert torch.equal(tensor, kept[name]), name
    net.eval()
    assert torch.equal(other.loss(net, batch).loss, update.loss(net, batch).loss)


def test_the_policy_needs_no_global_state(tmp_path):
    net, update, batch = made(Scripted, tmp_path)
    assert set(net.signature.inputs) == {"observation", "agent_id"}
    assert set(net.signature.outputs) == {"policy"}
    assert batch["global_state"].shape[1:] == (2, 6)
    for critic in update.critics.nets:
        wanted = {*net.signature.inputs, "global_state", "other_actions"}
        assert set(critic.signature.inputs) == wanted


def test_refusals():
    for name in ("Scripted", "Moving", "TwoTeams", "Screens"):
        games.allow(f"{MODULE}:{name}")
    assert not Masac.refusal(f"{MODULE}:Scripted")
    assert not Masac.refusal(f"{MODULE}:Moving")
    assert "team" in Masac.refusal(f"{MODULE}:TwoTeams")
    assert "state" in Masac.refusal(f"{MODULE}:Screens")
    assert "agents" in Masac.refusal("CartPole-v1")
    for name, shape in (("frames/observation", (3, 1, 8, 8)), ("lstm/hidden", (4,))):
        wanted = Signature(
            inputs={"agent_id": TensorSpec(shape=(3,))},
            outputs={"policy": TensorSpec(shape=(3,))},
            state={name: TensorSpec(shape=shape)},
        )
        with refused(UsageError, "net"):
            Masac().layout_of(wanted)


def test_a_small_task_leaves_the_defaults():
    spec = envs.env_spec("CartPole-v1")
    agent = Masac().for_environment(spec)
    learner, store = agent.default_learner(spec), agent.default_store(spec)
    steps = (learner.optimizer.learning_rate, learner.optimizer.average_decay)
    sizes = (agent.default_net(spec).num_units, learner.batch_size)
    found = (*sizes, *steps, agent.target_rate, store.samples_per_item)
    assert found == (128, 128, 7e-4, 0.0, 0.005, 16)
