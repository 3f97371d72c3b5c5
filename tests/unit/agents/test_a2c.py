"""A2C's update against a worked unroll, and against V-trace's update on policy."""

import math

import numpy as np
import pytest
import torch

from tengen.agents.a2c import A2c, A2cUpdate
from tengen.envs import ActionSpec
from tests.unit.agents.agent_fakes import item
from tests.unit.agents.test_vtrace import WORKED, doubling_net

CHOICE = ActionSpec(num_choices=(2,))
LIVE = (0, 1, 3)


def test_the_loss_of_a_worked_unroll_of_two_episodes():
    # Discount 1/2. Row 1 terminates, so its return is its reward, 3. Row 0: 1 + 3/2.
    # Row 3 is truncated: 1 + 16/2. Rows 2 and 4 are resets.
    agent = A2c(discount=0.5, baseline_cost=0.25, entropy_cost=0.1)
    update = A2cUpdate(agent, CHOICE)
    net = doubling_net()
    found = update.loss(net, item(**WORKED))
    advantages = [2.5 - 1, 3 - 2, 9 - 8]
    log_two = math.log(2.0)
    metrics = {name: metric.item() for name, metric in found.metrics.items()}
    assert metrics["policy_loss"] == pytest.approx(log_two * sum(advantages) / 5)
    assert metrics["baseline_loss"] == pytest.approx(
        sum(0.5 * a**2 for a in advantages) / 5
    )
    assert metrics["entropy"] == pytest.approx(3 * log_two / 5)
    assert found.loss.item() == pytest.approx(
        metrics["policy_loss"]
        + 0.25 * metrics["baseline_loss"]
        - 0.1 * metrics["entropy"]
    )
    found.loss.backward()
    policy = net.tables["policy"].grad
    reached = policy.abs().sum(1).numpy() > 0
    np.testing.assert_array_equal(reached.nonzero()[0], LIVE)
    # The advantages are positive, so gradient descent raises these actions' logits.
    assert bool((policy[torch.tensor(LIVE), 1] < 0).all())


def test_advantages_are_divided_by_how_large_they_were():
    update, net = A2cUpdate(A2c(discount=0.5), CHOICE), doubling_net()
    first = update.loss(net, item(**WORKED)).metrics
    assert first["advantage_square"].item() == pytest.approx((1.5**2 + 1 + 1) / 5)
    update.stepped(net, 1, {"advantage_square": 9.0})
    scaled = update.loss(net, item(**WORKED)).metrics
    assert scaled["policy_loss"].item() == pytest.approx(
        first["policy_loss"].item() / 3
    )


def test_one_step_advantages():
    agent = A2c(discount=0.5, trace_lambda=0.0)
    update = A2cUpdate(agent, CHOICE)
    found = update.loss(doubling_net(), item(**WORKED))
    advantages = [1 + 2 / 2 - 1, 3 - 2, 1 + 16 / 2 - 8]
    wanted = math.log(2.0) * sum(advantages) / 5
    assert found.metrics["policy_loss"].item() == pytest.approx(wanted)
