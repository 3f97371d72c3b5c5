"""SAC's update: gradients of each part, worked targets, and stored state."""

import math

import numpy as np
import pytest
import torch

from tengen.actors import Slots, make_squashed_draws
from tengen.agents.sac import Sac, SacUpdate
from tengen.envs import ActionSpec
from tengen.errors import UsageError
from tengen.losses import squashed_sample
from tengen.nets import MlpConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused

NUMBERS = ActionSpec(shape=(2,), low=(-2.0, 0.0), high=(2.0, 1.0))
CHOICE = ActionSpec(num_choices=(3,))
BATCH = 8


def made(actions, **settings):
    """Returns a small network and its update."""
    torch.manual_seed(1)
    agent = Sac(discount=0.5, **settings)
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(3,))},
        outputs=agent.outputs_of(actions),
    )
    net = MlpConfig(num_units=16).build(wanted)
    with torch.no_grad():
        # Random weights, because last layers start near 0 and would hide differences.
        for parameter in net.parameters():
            parameter.normal_(0, 0.5)
    update = SacUpdate(agent, net, actions)
    with torch.no_grad():
        for parameter in [*update.critics.parameters(), *update.target.parameters()]:
            parameter.normal_(0, 0.5)
    return net, update


def batch(actions):
    torch.manual_seed(2)
    action = torch.randint(0, 3, (BATCH, 2))
    if not actions.is_discrete:
        low, high = torch.tensor(actions.low), torch.tensor(actions.high)
        action = low + (high - low) * torch.rand(BATCH, 2, 2)
    terminated = torch.zeros(BATCH, 2)
    terminated[0, 0] = 1
    return {
        "observation": torch.randn(BATCH, 2, 3),
        "action": action,
        "reward": torch.randn(BATCH, 2),
        "terminated": terminated,
        "truncated": torch.zeros(BATCH, 2),
        "is_reset": torch.zeros(BATCH, 2),
    }


def value_of(net, update, critics, observation, noise):
    """Returns soft values, computed row by row as in the papers."""
    outputs = net.answer({"observation": observation}, {})[0]["policy"]
    temperature = update.log_temperature.exp()
    if noise is None:
        q = torch.stack(
            [one.answer({"observation": observation}, {})[0]["q"] for one in critics]
        )
        policy = outputs.softmax(-1)
        return (policy * (q.amin(0) - temperature * policy.log())).sum(-1)
    action, log_prob = squashed_sample(outputs, noise)
    inputs = {"observation": observation, "critic_action": action}
    q = torch.stack([one.answer(inputs, {})[0]["q"] for one in critics])
    return q.amin(0) - temperature * log_prob


@pytest.mark.parametrize("actions", [NUMBERS, CHOICE], ids=["numbers", "choice"])
def test_losses_are_those_of_the_papers(actions):
    net, update = made(actions, first_temperature=0.3)
    columns = next(update.minibatches(net, batch(actions)))
    found = update.loss(net, columns)
    noises = columns.get("noise")
    with torch.no_grad():
        now, reached = columns["observation"][:, 0], columns["observation"][:, 1]
        first, second = (None if noises is None else noises[:, i] for i in range(2))
        value_t = value_of(net, update, update.target.nets, reached, second)
        goes_on = 1 - columns["terminated"][:, 0]
        targets = columns["reward"][:, 0] + 0.5 * goes_on * value_t
        inputs, action = {"observation": now}, columns["action"][:, 0]
        total = torch.zeros(BATCH)
        for critic in update.critics.nets:
            if actions.is_discrete:
                q = critic.answer(inputs, {})[0]["q"]
                q = q[torch.arange(BATCH), action]
            else:
                scaled = torch.stack([action[:, 0] / 2, action[:, 1] * 2 - 1], 1)
                q = critic.answer({**inputs, "critic_action": scaled}, {})[0]["q"]
            total += (q - targets) ** 2 / 2
        value = value_of(net, update, update.critics.nets, now, first)
    assert found.metrics["critic_loss"].item() == pytest.approx(
        total.mean().item(), rel=1e-4
    )
    assert found.metrics["policy_loss"].item() == pytest.approx(
        -value.mean().item(), rel=1e-4
    )


@pytest.mark.parametrize("actions", [NUMBERS, CHOICE], ids=["numbers", "choice"])
def test_each_part_reaches_its_own_weights_alone(actions):
    net, update = made(actions)
    columns = next(update.minibatches(net, batch(actions)))
    found = update.loss(net, columns)
    policy, critics = list(net.parameters()), list(update.critics.parameters())

    def reached(loss, weights):
        gradients = torch.autograd.grad(
            loss, weights, retain_graph=True, allow_unused=True
        )
        return any(g is not None and bool(g.abs().sum() > 0) for g in gradients)

    critic_loss = found.metrics["critic_loss"]
    policy_loss = found.metrics["policy_loss"]
    assert reached(critic_loss, critics)
    assert not reached(critic_loss, policy)
    assert reached(policy_loss, policy)
    assert not reached(policy_loss, critics)
    assert not reached(policy_loss, [update.log_temperature])
    assert reached(found.loss, [update.log_temperature])
    assert not any(p.requires_grad for p in update.target.parameters())


def test_targets_follow_and_a_checkpoint_has_all():
    net, update = made(NUMBERS, target_rate=0.25)
    name, weight = next(iter(update.critics.named_parameters()))
    target = dict(update.target.named_parameters())[name]
    wanted = target + 0.25 * (weight - target)
    update.move_targets(net)
    torch.testing.assert_close(target, wanted)
    kept = {name: tensor.clone() for name, tensor in update.state().items()}
    _, other = made(NUMBERS, first_temperature=3.0)
    other.load_state(kept)
    for name, tensor in other.state().items():
        torch.testing.assert_close(tensor, kept[name])
    assert kept["log_temperature"].item() == 0
    learned = len(update.parameters())
    assert learned == 1 + sum(1 for _ in update.critics.parameters())


def test_actions_are_drawn_between_the_bounds_with_the_density_of_the_learner():
    outputs = np.random.default_rng(0).normal(0, 2, (3000, 4)).astype(np.float32)
    draws = make_squashed_draws(NUMBERS)
    uniforms = np.random.default_rng(1).random((3000, draws.num_uniforms))
    actions, log_prob = draws.draw(outputs, uniforms)
    assert (actions >= NUMBERS.low).all()
    assert (actions <= NUMBERS.high).all()
    scaled = np.stack([actions[:, 0] / 2, actions[:, 1] * 2 - 1], 1)
    mean, log_std = np.split(outputs.astype(np.float64), 2, 1)
    inside = (np.abs(scaled) < 0.99).all(1)
    assert inside.sum() > 300
    before = np.arctanh(scaled[inside])
    noise = (before - mean[inside]) / np.exp(log_std[inside].clip(-20, 2))
    _, wanted = squashed_sample(
        torch.from_numpy(outputs[inside]), torch.from_numpy(noise).float()
    )
    np.testing.assert_allclose(log_prob[inside], wanted.numpy(), atol=5e-3)
    greedy = draws.greedy(outputs)
    np.testing.assert_allclose(greedy[:, 0], 2 * np.tanh(mean[:, 0]), atol=1e-5)
    np.testing.assert_allclose(greedy[:, 1], (np.tanh(mean[:, 1]) + 1) / 2, atol=1e-5)


def test_which_actions_it_takes():
    assert Sac.refusal_of(NUMBERS) == ""
    assert Sac.refusal_of(CHOICE) == ""
    several = ActionSpec(shape=(2,), num_choices=(2, 2))
    assert "it needs a single action, or a Box" in Sac.refusal_of(several)
    endless = ActionSpec(shape=(1,), low=(-math.inf,), high=(math.inf,))
    assert "bounds" in Sac.refusal_of(endless)
    most = float(np.finfo(np.float32).max)
    nearly_endless = ActionSpec(shape=(2,), low=(-1.0, -most), high=(1.0, most))
    assert "bounds" in Sac.refusal_of(nearly_endless)
    with refused(UsageError, "net (lstm/hidden)"):
        Sac().layout({"lstm/hidden": TensorSpec(shape=(4,))})
    slots = Slots(first=0, count=2, total=2)
    act = Sac().act
    uniforms = np.random.default_rng(0).random((2, 1))
    chosen = act({"policy": np.zeros((2, 3), np.float32)}, CHOICE, uniforms, slots)
    assert chosen["action"].shape == (2,)


def test_a_number_that_cannot_change_is_no_matter():
    actions = ActionSpec(shape=(2,), low=(-2.0, 0.5), high=(2.0, 0.5))
    net, update = made(actions)
    found = update.loss(net, next(update.minibatches(net, batch(actions))))
    found.loss.backward()
    weights = [*net.parameters(), *update.parameters()]
    gradients = [one.grad for one in weights if one.grad is not None]
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    # Critics see 0 for a dimension that cannot move, in stored and sampled actions.
    taken = torch.tensor([[1.0, 0.5]])
    seen = {"observation": torch.zeros(1, 3)}
    shown = update.critics(seen, {}, torch.tensor([[0.5, -0.7]]))
    torch.testing.assert_close(update.critics.of_taken(seen, {}, taken), shown)


def test_critics_see_pictures_less_the_mean_that_the_actor_knows():
    wanted = Signature(
        inputs={"observation": TensorSpec(dtype="uint8", shape=(1, 8, 8))},
        outputs={"policy": TensorSpec(shape=(3,))},
    )
    config = NatureConfig(channels=(4,), kernels=(3,), strides=(1,), num_units=8)
    net = config.build(wanted)
    update = SacUpdate(Sac(), net, CHOICE)
    seen = {"observation": torch.randint(0, 200, (16, 1, 8, 8), dtype=torch.uint8)}
    net.answer(seen, {})
    before = update.critics(seen, {}, None)
    update.move_targets(net)
    shifted = {"observation": seen["observation"] + 50}
    mean = net.get_buffer("torso.centres.0.total")
    assert mean.mean() > 16 * 50
    for critics in (update.critics, update.target):
        found = critics(seen, {}, None)
        assert not torch.allclose(found, before)
        for critic in critics.nets:
            assert torch.equal(critic.get_buffer("torso.centres.0.total"), mean)
        # Evaluating other images must not change the mean.
        critics(shifted, {}, None)
        assert torch.equal(critics(seen, {}, None), found)


def test_critics_see_numbers_in_the_actors_units_and_the_action_as_it_is():
    agent = Sac()
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(3,))},
        outputs=agent.outputs_of(NUMBERS),
    )
    net = MlpConfig(num_units=16, standardizes=True).build(wanted)
    update = SacUpdate(agent, net, NUMBERS)
    action = torch.rand(BATCH, 2) * 2 - 1
    # Far from 0 and with a large spread, so that standardization has an effect.
    seen = 50 + 20 * torch.randn(BATCH, 3)
    net.answer({"observation": seen}, {})
    update.move_targets(net)
    units = (seen - seen.mean(0)) / seen.std(0, correction=0)
    for critics in (update.critics, update.target):
        found = critics({"observation": seen}, {}, action)
        plain = MlpConfig(num_units=16)
        for critic, q in zip(critics.nets, found, strict=True):
            other = plain.build(critic.wanted)
            other.load_state_dict(
                {
                    name: tensor
                    for name, tensor in critic.state_dict().items()
                    if not name.startswith("standard.")
                }
            )
            shown = {"observation": units, "critic_action": action}
            q_plain = other.answer(shown, {})[0]["q"]
            torch.testing.assert_close(q, q_plain, rtol=0, atol=1e-4)
        assert found.std() > 0


@pytest.mark.parametrize("actions", [NUMBERS, CHOICE], ids=["numbers", "choice"])
def test_frozen_critics_are_these_whatever_changed_them(actions):
    net, update = made(actions)
    other = made(actions)[1]
    with torch.no_grad():
        for parameter in other.critics.parameters():
            parameter.normal_(0, 0.5)
    columns = next(update.minibatches(net, batch(actions)))
    inputs = {"observation": columns["observation"][:, 0]}
    action = None if actions.is_discrete else columns["action"][:, 0].float()

    def answers(frozen):
        critics = update.critics
        answer = critics.frozen if frozen else critics.forward
        return answer(inputs, {}, action).detach()

    found = [answers(frozen=True)]
    with torch.no_grad():
        for parameter in update.critics.parameters():
            parameter.mul_(1.1)
    found.append(answers(frozen=True))
    assert torch.equal(found[-1], answers(frozen=False))
    update.load_state(other.state())
    found.append(answers(frozen=True))
    assert torch.equal(found[-1], answers(frozen=False))
    update.place(torch.device("cpu"), torch.bfloat16)
    assert torch.equal(answers(frozen=True), answers(frozen=False))
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])
    assert update.state().keys() == other.state().keys()
