"""The auxiliary losses against worked arrays."""

from __future__ import annotations

import math

import pytest
import torch

from tengen.learners import AlphaZeroConfig, AlphaZeroLoss
from tengen.learners.losses import (
    horizon_cross_entropy,
    lead_huber,
    mean_score_huber,
    ownership_cross_entropy,
    reply_cross_entropy,
    score_distribution,
    score_losses,
)
from tengen.nets import FeatureSpec, ResNetConfig, build_net


def test_a_reply_is_compared_on_the_board() -> None:
    # One row of three cells, the last beyond the board, and a pass.
    board = torch.tensor([[[1.0, 1.0, 0.0]]])
    logits = torch.tensor([[0.0, math.log(2.0), 50.0, 0.0]], requires_grad=True)
    loss = reply_cross_entropy(logits, board, torch.tensor([[0.0, 0.5, 0.0, 0.5]]))
    expected = 0.5 * math.log(2.0) + 0.5 * math.log(4.0)
    torch.testing.assert_close(loss, torch.tensor([expected]))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    torch.testing.assert_close(gradient, torch.tensor([[0.25, 0.0, 0.0, -0.25]]))
    nothing = reply_cross_entropy(logits, board, torch.zeros(1, 4))
    assert nothing.tolist() == [0.0]


def test_a_horizon_is_a_chance_to_win() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)]])
    loss = horizon_cross_entropy(logits, torch.tensor([[1.0, 0.0]]))
    second = -0.5 * math.log(0.75) - 0.5 * math.log(0.25)
    torch.testing.assert_close(loss, torch.tensor([(math.log(2.0) + second) / 2]))


def test_ownership_is_a_mean_over_the_board() -> None:
    board = torch.tensor([[[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    logits = torch.tensor([[[0.0, math.log(3.0), 9.0]], [[0.0, 9.0, 9.0]]])
    owners = torch.tensor([[[0.0, -1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    loss = ownership_cross_entropy(logits, board, owners)
    first = (math.log(2.0) + math.log(4.0)) / 2
    torch.testing.assert_close(loss, torch.tensor([first, math.log(2.0)]))


def test_a_score_lies_between_half_points() -> None:
    # The places of two points are -1.5, -0.5, 0.5, 1.5.
    found = score_distribution(torch.tensor([0.5, 1.0, 0.75, -9.0, 9.0, 0.0]), 2)
    expected = [
        [0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.5, 0.5],
        [0.0, 0.0, 0.75, 0.25],
        [1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
        [0.0, 0.5, 0.5, 0.0],
    ]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_losses_of_a_score() -> None:
    # Probabilities (1/2, 1/4, 1/8, 1/8) against the second place.
    logits = torch.tensor([[4.0, 2.0, 1.0, 1.0]]).log()
    exact, sums = score_losses(logits, torch.tensor([-0.5]))
    torch.testing.assert_close(exact, torch.tensor([math.log(4.0)]))
    squares = 0.5**2 + 0.25**2 + 0.125**2
    torch.testing.assert_close(sums, torch.tensor([squares]))
    huber = mean_score_huber(torch.tensor([1.0, 20.0]), torch.tensor([3.0, 0.0]))
    torch.testing.assert_close(huber, torch.tensor([2.0, 12.0 * (20.0 - 6.0)]))
    lead = lead_huber(torch.tensor([1.0, -20.0]), torch.tensor([-2.0, 0.0]))
    torch.testing.assert_close(lead, torch.tensor([4.5, 8.0 * (20.0 - 4.0)]))


FEATURES = FeatureSpec(
    num_planes=3,
    height=4,
    width=5,
    num_actions=21,
    policy_layout="cells_and_pass",
    max_score=30,
)


def random_columns(num_rows: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(num_rows, *shape, generator=generator)

    planes = draw(3, 4, 5)
    planes[:, 0] = 1.0
    planes[0, 0, :, 4] = 0.0
    return {
        "planes": planes,
        "legal": torch.ones(num_rows, 21, dtype=torch.uint8),
        "policy": draw(21).softmax(1),
        "policy_weight": draw(),
        "outcome": draw(3).softmax(1),
        "search_value": draw() * 2 - 1,
        "value_weight": draw(),
        "reply": draw(21).softmax(1),
        "reply_weight": draw(),
        "horizons": draw(3) * 2 - 1,
        "ownership": draw(4, 5).round() * 2 - 1,
        "score": draw() * 20 - 10,
        "final_weight": draw(),
        "lead": draw() * 20 - 10,
        "lead_weight": draw(),
    }


@pytest.mark.parametrize("asks_for_lead", [False, True])
def test_the_loss_is_the_weighted_sum_of_its_parts(asks_for_lead: bool) -> None:
    torch.manual_seed(1)
    size = ResNetConfig(
        num_blocks=2,
        num_channels=8,
        auxiliary=True,
        lead=asks_for_lead,
        mixed_sizes=True,
    )
    net = build_net(FEATURES, size)
    columns = random_columns(6)
    config = AlphaZeroConfig(
        value_cost=2.0,
        reply_cost=3.0,
        horizons_cost=5.0,
        ownership_cost=7.0,
        score_cost=11.0,
        mean_score_cost=13.0,
        lead_cost=17.0,
    )
    loss, metrics = AlphaZeroLoss(config)(net, columns)
    costs = {
        "policy_loss": 1.0,
        "value_loss": 2.0,
        "reply_loss": 3.0,
        "horizons_loss": 5.0,
        "ownership_loss": 7.0,
        "score_loss": 11.0,
        "mean_score_loss": 13.0,
    }
    if asks_for_lead:
        costs["lead_loss"] = 17.0
    assert metrics.keys() == costs.keys()
    total = sum(cost * metrics[name] for name, cost in costs.items())
    torch.testing.assert_close(loss, total)
    assert all(metric > 0 for metric in metrics.values())
    # A row without weights costs nothing.
    for name in columns:
        if name.endswith("_weight"):
            columns[name] = torch.zeros(6)
    assert AlphaZeroLoss(config)(net, columns)[0] == 0


def test_the_lead_is_learned_in_the_rows_that_have_one() -> None:
    torch.manual_seed(1)
    size = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True, lead=True)
    net = build_net(FEATURES, size).eval()
    columns = random_columns(6)
    columns["lead_weight"] = torch.tensor([0.0, 0.5, 0.0, 0.0, 1.0, 0.0])
    with torch.no_grad():
        net.auxiliary_heads.lead.weight.zero_()
        net.auxiliary_heads.lead.bias.fill_(0.5)  # 10 points
    _, metrics = AlphaZeroLoss(AlphaZeroConfig())(net, columns)
    errors = 10.0 - columns["lead"]
    costs = torch.where(errors < 8.0, errors.square() / 2, 8.0 * (errors - 4.0))
    expected = (costs[1] / 2 + costs[4]) / 6
    torch.testing.assert_close(metrics["lead_loss"], expected)


def test_without_targets_a_network_with_such_heads_learns_as_one_without() -> None:
    columns = random_columns(6)
    alone = {
        name: columns[name] for name in list(columns)[: list(columns).index("reply")]
    }
    losses = []
    for auxiliary in (False, True):
        torch.manual_seed(1)
        size = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=auxiliary)
        loss, metrics = AlphaZeroLoss(AlphaZeroConfig())(
            build_net(FEATURES, size), alone
        )
        assert metrics.keys() == {"policy_loss", "value_loss"}
        losses.append(loss.item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("max_score", [0, 30])
def test_every_auxiliary_weight_is_taught(max_score: int) -> None:
    torch.manual_seed(1)
    features = FeatureSpec(
        num_planes=3,
        height=4,
        width=5,
        num_actions=21,
        policy_layout="cells_and_pass",
        max_score=max_score,
    )
    net = build_net(
        features, ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True, lead=True)
    )
    columns = random_columns(6)
    loss, _ = AlphaZeroLoss(AlphaZeroConfig())(net, columns)
    loss.backward()
    heads = dict(net.named_parameters())
    names = [name for name in heads if name.startswith("auxiliary_heads.")]
    assert len(names) == (14 if max_score else 6)
    for name in names:
        gradient = heads[name].grad
        assert gradient is not None, name
        assert gradient.abs().sum() > 0, name
