"""The auxiliary losses within the self-play loss."""

import pytest
import torch

from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.nets import ResNetConfig
from tengen.tensors import BoardSpec

ACCURACIES = {"policy_accuracy", "value_accuracy"}
FEATURES = BoardSpec(
    num_planes=3,
    height=4,
    width=5,
    num_actions=21,
    policy_layout="cells_and_pass",
    max_score=30,
)


def random_columns(num_rows):
    generator = torch.Generator().manual_seed(1)

    def draw(*shape):
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
def test_the_loss_is_the_weighted_sum_of_its_parts(asks_for_lead):
    torch.manual_seed(1)
    size = ResNetConfig(
        num_blocks=2,
        num_channels=8,
        auxiliary=True,
        lead=asks_for_lead,
        mixed_sizes=True,
    )
    net = size.build(FEATURES.signature)
    columns = random_columns(6)
    config = AlphaZeroLossConfig(
        value_cost=2.0,
        reply_cost=3.0,
        horizons_cost=5.0,
        ownership_cost=7.0,
        score_cost=11.0,
        mean_score_cost=13.0,
        lead_cost=17.0,
    )
    loss, metrics, _ = AlphaZeroUpdate(config).loss(net, columns)
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
    assert metrics.keys() - ACCURACIES == costs.keys()
    total = sum(cost * metrics[name] for name, cost in costs.items())
    torch.testing.assert_close(loss, total)
    assert all(metrics[name] > 0 for name in costs)
    # A row with zero weights adds no loss.
    for name in columns:
        if name.endswith("_weight"):
            columns[name] = torch.zeros(6)
    assert AlphaZeroUpdate(config).loss(net, columns).loss == 0


def test_the_lead_is_learned_in_the_rows_that_have_one():
    torch.manual_seed(1)
    size = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True, lead=True)
    net = size.build(FEATURES.signature).eval()
    columns = random_columns(6)
    columns["lead_weight"] = torch.tensor([0.0, 0.5, 0.0, 0.0, 1.0, 0.0])
    with torch.no_grad():
        net.auxiliary_heads.lead.weight.zero_()
        net.auxiliary_heads.lead.bias.fill_(0.5)  # 10 points
    metrics = AlphaZeroUpdate(AlphaZeroLossConfig()).loss(net, columns).metrics
    errors = 10.0 - columns["lead"]
    costs = torch.where(errors < 8.0, errors.square() / 2, 8.0 * (errors - 4.0))
    expected = (costs[1] / 2 + costs[4]) / 6
    torch.testing.assert_close(metrics["lead_loss"], expected)


def test_without_targets_a_network_with_such_heads_learns_as_one_without():
    columns = random_columns(6)
    alone = {
        name: columns[name] for name in list(columns)[: list(columns).index("reply")]
    }
    losses = []
    for auxiliary in (False, True):
        torch.manual_seed(1)
        size = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=auxiliary)
        loss, metrics, _ = AlphaZeroUpdate(AlphaZeroLossConfig()).loss(
            size.build(FEATURES.signature), alone
        )
        assert metrics.keys() == {"policy_loss", "value_loss"} | ACCURACIES
        losses.append(loss.item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("max_score", [0, 30])
def test_every_auxiliary_weight_is_taught(max_score):
    torch.manual_seed(1)
    features = BoardSpec(
        num_planes=3,
        height=4,
        width=5,
        num_actions=21,
        policy_layout="cells_and_pass",
        max_score=max_score,
    )
    net = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True, lead=True).build(
        features.signature
    )
    columns = random_columns(6)
    AlphaZeroUpdate(AlphaZeroLossConfig()).loss(net, columns).loss.backward()
    heads = dict(net.named_parameters())
    names = [name for name in heads if name.startswith("auxiliary_heads.")]
    assert len(names) == (14 if max_score else 6)
    for name in names:
        gradient = heads[name].grad
        assert gradient.abs().sum() > 0, name
