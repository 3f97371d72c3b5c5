"""IQN: fractions, its update against a slow reference, and its action selection."""

import numpy as np
import pytest
import torch

from tengen.agents.iqn import Iqn, IqnUpdate
from tengen.envs import ActionSpec
from tengen.experience import ReplayConfig
from tengen.nets import MlpConfig
from tengen.tensors import FRACTIONS, QUANTILES, Signature, TensorSpec

CHOICES = ActionSpec(num_choices=(3,))
STORE = ReplayConfig(sampler="prioritized", max_items=10)
BATCH, STEPS = 6, 3


def net_of(agent, lstm_units=0):
    torch.manual_seed(0)
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs=agent.outputs_of(CHOICES),
    )
    net = MlpConfig(num_units=16, lstm_units=lstm_units).build(wanted)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(0, 0.4)
    return net


def batch():
    torch.manual_seed(1)
    flags = torch.zeros(3, BATCH, STEPS + 1)
    flags[0, 0, 1] = flags[2, 0, 2] = 1  # terminated, then reset
    flags[1, 1, 0] = flags[2, 1, 1] = 1  # truncated, then reset
    return {
        "observation": torch.randn(BATCH, STEPS + 1, 4),
        "action": torch.randint(0, 3, (BATCH, STEPS + 1)),
        "reward": torch.randn(BATCH, STEPS + 1),
        "terminated": flags[0],
        "truncated": flags[1],
        "is_reset": flags[2],
        "importance_weight": torch.linspace(0.5, 1, BATCH),
    }


def test_the_middles_are_what_the_net_answers_where_nobody_asks():
    agent = Iqn(num_quantiles=4)
    for net in (net_of(agent), net_of(agent, lstm_units=5)):
        inputs = {"observation": torch.randn(2, 4)}
        state = {n: s.zeros(2) for n, s in net.signature.state.items()}
        state = {n: torch.from_numpy(s) for n, s in state.items()}
        plain = net.answer(inputs, state)[0][QUANTILES]
        assert plain.shape == (2, 4, 3)
        middles = torch.tensor([[0.125, 0.375, 0.625, 0.875]]).expand(2, -1)
        asked = net.answer({**inputs, FRACTIONS: middles}, state)[0][QUANTILES]
        torch.testing.assert_close(asked, plain)
        other = net.answer({**inputs, FRACTIONS: middles * 0.5}, state)[0][QUANTILES]
        assert other.shape == (2, 4, 3)
        assert not torch.allclose(other, plain)


def test_loss_and_priorities_are_the_slow_reference_s():
    agent = Iqn(num_quantiles=5, num_fractions=3, num_steps=STEPS, discount=0.9)
    net = net_of(agent)
    update = IqnUpdate(agent, net, STORE)
    with torch.no_grad():
        for parameter in update.target.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    columns = next(update.minibatches(net, batch()))
    found = update.loss(net, columns)
    total, priorities = 0.0, []
    for b in range(BATCH):

        def answer(one, t, drawn, b=b):
            inputs = {"observation": columns["observation"][b : b + 1, t]}
            if drawn is not None:
                inputs[FRACTIONS] = columns[FRACTIONS][b : b + 1, drawn]
            return one.answer(inputs, {})[0][QUANTILES][0].detach()

        reward, worth, end = 0.0, 1.0, STEPS
        for t in range(STEPS):
            reward += worth * float(columns["reward"][b, t])
            worth *= 0.9
            if columns["terminated"][b, t] or columns["truncated"][b, t]:
                worth *= 1 - float(columns["terminated"][b, t])
                end = t + 1
                break
        best = int(answer(net, end, None).mean(0).argmax())
        targets = reward + worth * answer(update.target, end, 1)[:, best]
        answers = answer(net, 0, 0)[:, int(columns["action"][b, 0])]
        loss = 0.0
        for fraction, one in zip(columns[FRACTIONS][b, 0], answers, strict=True):
            for target in targets:
                u = float(target - one)
                huber = u**2 / 2 if abs(u) <= 1 else abs(u) - 0.5
                loss += abs(float(fraction) - float(u < 0)) * huber / len(targets)
        total += loss * float(columns["importance_weight"][b]) / BATCH
        priorities.append(abs(float(targets.mean() - answers.mean())))
    assert found.loss.item() == pytest.approx(total, rel=1e-4)
    np.testing.assert_allclose(found.priorities.numpy(), priorities, atol=1e-5)


def test_fractions_are_drawn_anew_for_each_batch():
    agent = Iqn()
    net = net_of(agent)
    update = IqnUpdate(agent, net, STORE)
    columns = batch()
    first, second = (
        next(update.minibatches(net, columns))[FRACTIONS] for _ in range(2)
    )
    assert first.shape == (BATCH, 2, 8)
    # One fraction in each eighth.
    assert bool(((8 * first).floor() == torch.arange(8.0)).all())
    assert bool((8 * first % 1).std() > 0.2)
    assert not torch.equal(first, second)
    assert not torch.equal(first[:, 0], first[:, 1])


def test_the_greatest_mean_is_chosen():
    quantiles = np.zeros((1, 2, 3), np.float32)
    quantiles[0, :, 0] = [0, 10]
    quantiles[0, :, 1] = [6, 6]
    quantiles[0, :, 2] = [-50, 11]
    chosen = Iqn(num_quantiles=2).act_greedily({QUANTILES: quantiles}, CHOICES)
    assert chosen["action"].tolist() == [1]
