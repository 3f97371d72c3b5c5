"""The self-play loss of batches computed by hand."""

import math

import pytest
import torch

from tengen import losses
from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate


class _Fixed(torch.nn.Module):
    """A network that returns fixed outputs for any planes."""

    def __init__(self, policy, value):
        super().__init__()
        self.policy, self.value = policy, value

    def forward(self, planes):
        return self.policy, self.value


def test_loss_weighs_rows_and_divides_by_their_number():
    net = _Fixed(torch.zeros(2, 4), torch.zeros(2, 3))
    columns = {
        "planes": torch.zeros(2, 1, 2, 2),
        "legal": torch.ones(2, 4, dtype=torch.uint8),
        "policy": torch.tensor([[1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]]),
        "policy_weight": torch.tensor([1.0, 0.0]),
        "outcome": torch.tensor([[1.0, 0, 0], [0, 1.0, 0]]),
        "search_value": torch.zeros(2),
        "value_weight": torch.tensor([1.0, 2.0]),
    }
    config = AlphaZeroLossConfig(value_cost=0.5, search_value_share=0.0)
    loss, metrics, priorities = AlphaZeroUpdate(config).loss(net, columns)
    policy, value = math.log(4.0) / 2, 3 * math.log(3.0) / 2
    assert math.isclose(metrics["policy_loss"].item(), policy, rel_tol=1e-6)
    assert math.isclose(metrics["value_loss"].item(), value, rel_tol=1e-6)
    # Only the first row has policy weight, and its best action is predicted. The value
    # weights are 1 and 2, and only the outcome with weight 1 is predicted.
    assert metrics["policy_accuracy"].item() == 1.0
    assert metrics["value_accuracy"].item() == pytest.approx(1 / 3)
    assert math.isclose(loss.item(), policy + 0.5 * value, rel_tol=1e-6)
    assert priorities is None


def test_the_losses_of_the_config_are_taken():
    # Two of four actions are legal; the value is 0; one game was won, the other lost.
    net = _Fixed(torch.zeros(2, 4), torch.tensor([[0.0, -128.0, 0.0]] * 2))
    columns = {
        "planes": torch.zeros(2, 1, 2, 2),
        "legal": torch.tensor([[1, 1, 0, 0]] * 2, dtype=torch.uint8),
        "policy": torch.tensor([[1.0, 0, 0, 0]] * 2),
        "policy_weight": torch.ones(2),
        "outcome": torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]),
        "search_value": torch.zeros(2),
        "value_weight": torch.ones(2),
    }
    found = {}
    for masks, value_loss in ((True, "cross_entropy"), (False, "squared")):
        config = AlphaZeroLossConfig(
            value_cost=0.5,
            search_value_share=0.0,
            masks_illegal=masks,
            value_loss=value_loss,
        )
        metrics = AlphaZeroUpdate(config).loss(net, columns).metrics
        names = ("policy_loss", "value_loss")
        found[value_loss] = [metrics[name].item() for name in names]
    log2, log4 = math.log(2.0), math.log(4.0)
    assert found["cross_entropy"] == [pytest.approx(log2), pytest.approx(log2)]
    assert found["squared"] == [pytest.approx(log4), pytest.approx(1.0)]


def test_accuracies_are_of_legal_moves_and_rows_that_count():
    logits = torch.tensor([[5.0, 1, 2, 0], [0, 3, 1, 0], [0, 0, 0, 9.0]])
    legal = torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
    target = torch.tensor([[0, 0.1, 0.9, 0], [1.0, 0, 0, 0], [0, 0, 0, 0]])
    weight = torch.tensor([2.0, 1.0, 0.0])
    found = losses.policy_accuracy(logits, legal, target, weight)
    assert found.item() == pytest.approx(2 / 3)
    assert losses.policy_accuracy(logits, legal, target, 0 * weight).item() == 0
    outcome = torch.eye(3)
    results = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 0, 1]])
    found = losses.value_accuracy(results, outcome, torch.tensor([1.0, 3.0, 1.0]))
    assert found.item() == pytest.approx(2 / 5)
