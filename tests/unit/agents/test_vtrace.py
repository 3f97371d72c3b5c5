"""V-trace's update against the paper's sum over each episode, and worked items."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tengen.agents.vtrace import Vtrace, VtraceUpdate
from tengen.envs import ActionSpec
from tengen.tensors import TensorSpec
from tests.unit.agents.agent_fakes import TableNet, item, items_of
from tests.unit.losses.episodes import random_rows

# Values 1 2 4 8 16 32; states 2 and 4 are final observations: the first episode
# terminates and the second is truncated.
WORKED = {
    "observation": [0, 1, 2, 3, 4, 5],
    "action": [1, 1, 1, 1, 1, 0],
    "reward": [1.0, 3, 7, 1, 7, 0],
    "terminated": [0, 1, 0, 0, 0, 0],
    "truncated": [0, 0, 0, 1, 0, 0],
    "is_reset": [0, 0, 1, 0, 1, 0],
    "behaviour_log_prob": [math.log(0.5)] * 2 + [-9.0, math.log(0.5), -9.0, 0.0],
}


def doubling_net():
    return TableNet(policy=np.zeros((6, 2)), value=2.0 ** np.arange(6))


def update_of(num_actions=2, **settings):
    return VtraceUpdate(Vtrace(**settings), ActionSpec(num_choices=(num_actions,)))


def test_the_loss_of_a_worked_unroll_of_two_episodes():
    # Discount 1/2, on policy. Row 1 terminates, so its target is its reward, 3. Row 0:
    # 1 + 3/2. Row 3 is truncated: 1 + 16/2. Rows 2 and 4 are resets.
    errors = [2.5 - 1, 3 - 2, 9 - 8]
    advantages = [1 + 3 / 2 - 1, 3 - 2, 1 + 16 / 2 - 8]
    log_two = math.log(2.0)
    expected = {
        "policy_loss": log_two * sum(advantages) / 5,
        "baseline_loss": sum(0.5 * error**2 for error in errors) / 5,
        "entropy": 3 * log_two / 5,
    }
    update = update_of(discount=0.5, baseline_cost=0.25, entropy_cost=0.1)
    found = update.loss(doubling_net(), item(**WORKED))
    for name, value in expected.items():
        assert found.metrics[name].item() == pytest.approx(value, rel=1e-6), name
    assert found.loss.item() == pytest.approx(
        expected["policy_loss"]
        + 0.25 * expected["baseline_loss"]
        - 0.1 * expected["entropy"]
    )
    assert found.priorities is None


def gradients(parts, net):
    names = list(net.tables)
    found = torch.autograd.grad(parts.loss, [net.tables[name] for name in names])
    return dict(zip(names, found, strict=True))


def test_rows_that_reset_and_the_last_row_have_no_gradient():
    net = TableNet(policy=np.eye(6, 2), value=2.0 ** np.arange(6))
    found = gradients(update_of(discount=0.5).loss(net, item(**WORKED)), net)
    for gradient in found.values():
        is_learnt = gradient.reshape(6, -1).abs().sum(1) > 0
        assert is_learnt.tolist() == [True, True, False, True, False, False]


class Trace:
    """One episode's part of an item, by equation (1) of the paper."""

    def __init__(self, rows, piece, column, discount):
        steps = range(piece.start, piece.stop)
        self.v, self.reward = rows.v[:, column], rows.reward[:, column]
        self.discounts = dict.fromkeys(steps, discount)
        if piece.terminated:
            self.discounts[piece.stop - 1] = 0.0
        self.ratios: dict[int, float] = {}

    def target(self, start, trace_lambda, clip_rho, clip_c):
        total, product = float(self.v[start]), 1.0
        for t in range(start, max(self.ratios) + 1):
            delta = self.reward[t] + self.discounts[t] * self.v[t + 1] - self.v[t]
            total += product * min(clip_rho, self.ratios[t]) * delta
            c = trace_lambda * min(clip_c, self.ratios[t])
            product *= self.discounts[t] * c
        return total


@pytest.mark.parametrize("clips", [(1.0, 1.0, 1.0), (1.5, 0.8, 1.3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_paper_s_sum_over_each_episode(seed, clips):
    rows = random_rows(seed)
    columns, places = items_of(rows, seed=seed)
    num_steps, num_items = rows.reward.shape
    rng = np.random.default_rng([seed, 1])
    logits = rng.normal(size=(places.size, 3))
    net = TableNet(policy=logits, value=rows.v.flatten())
    clip_rho, clip_c, clip_pg_rho = clips
    update = update_of(
        num_actions=3,
        discount=0.9,
        trace_lambda=0.8,
        clip_rho=clip_rho,
        clip_c=clip_c,
        clip_pg_rho=clip_pg_rho,
        baseline_cost=0.3,
        entropy_cost=0.2,
    )
    log_pi = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    action = columns["action"].numpy().T
    behaviour = columns["behaviour_log_prob"].numpy().T
    policy_loss = baseline_loss = entropy = 0.0
    for b in range(num_items):
        for piece in rows.pieces(b):
            trace = Trace(rows, piece, b, discount=0.9)
            for t in range(piece.start, piece.stop):
                taken = log_pi[places[t, b], action[t, b]]
                trace.ratios[t] = math.exp(taken - behaviour[t, b])
            for t in range(piece.start, piece.stop):
                target = trace.target(t, 0.8, clip_rho, clip_c)
                reached = rows.v[t + 1, b]
                if t + 1 < piece.stop:
                    reached = trace.target(t + 1, 0.8, clip_rho, clip_c)
                advantage = rows.reward[t, b] + trace.discounts[t] * reached
                advantage -= rows.v[t, b]
                advantage *= min(clip_pg_rho, trace.ratios[t])
                row = log_pi[places[t, b]]
                policy_loss -= row[action[t, b]] * advantage
                baseline_loss += 0.5 * (target - rows.v[t, b]) ** 2
                entropy -= (np.exp(row) * row).sum()
    found = update.loss(net, columns)
    size = num_steps * num_items
    assert found.metrics["policy_loss"].item() == pytest.approx(
        policy_loss / size, rel=1e-4
    )
    assert found.metrics["baseline_loss"].item() == pytest.approx(
        baseline_loss / size, rel=1e-4
    )
    assert found.metrics["entropy"].item() == pytest.approx(entropy / size, rel=1e-4)
    expected = policy_loss + 0.3 * baseline_loss - 0.2 * entropy
    assert found.loss.item() == pytest.approx(expected / size, rel=1e-4)


def test_advantages_are_divided_by_how_large_they_were():
    update, net = update_of(discount=0.5), doubling_net()
    first = update.loss(net, item(**WORKED)).metrics
    assert update.advantage_scale == 1.0
    square = first["advantage_square"].item()
    # Reset rows have no advantage: 5 rows, 3 of them transitions.
    assert square == pytest.approx((1.5**2 + 1 + 1) / 5)
    update.stepped(net, 1, {"advantage_square": 4.0})
    assert update.advantage_scale == pytest.approx(2.0)
    scaled = update.loss(net, item(**WORKED)).metrics
    assert scaled["policy_loss"].item() == pytest.approx(
        first["policy_loss"].item() / 2
    )
    assert scaled["baseline_loss"] == first["baseline_loss"]
    # A checkpoint preserves the running estimate; the scale's lower bound is 0.01.
    other = update_of(discount=0.5)
    other.load_state(update.state())
    for one in (update, other):
        one.stepped(net, 2, {"advantage_square": 1.0})
    assert other.advantage_scale == update.advantage_scale
    assert 1.5 < update.advantage_scale < 1.6
    for step in range(2_000):
        update.stepped(net, step, {"advantage_square": 0.0})
    assert update.advantage_scale == pytest.approx(0.01)


def test_the_loss_is_a_mean_over_items():
    columns, places = items_of(random_rows(0))
    net = TableNet(
        policy=np.random.default_rng(0).normal(size=(places.size, 3)),
        value=np.arange(places.size) % 7,
    )
    update = update_of(num_actions=3)
    whole = update.loss(net, columns).loss
    parts = [
        update.loss(net, {n: c[rows] for n, c in columns.items()}).loss
        for rows in (slice(0, 3), slice(3, 6))
    ]
    torch.testing.assert_close(whole, (parts[0] + parts[1]) / 2)


def test_unrolls_are_longer_for_a_network_with_memory():
    memory = {"memory": TensorSpec(shape=(4,))}
    assert Vtrace().layout({}).num_steps == 20 + 1
    assert Vtrace().layout(memory).num_steps == 64 + 1
    assert Vtrace(unroll_length=7).layout(memory).num_steps == 7 + 1
