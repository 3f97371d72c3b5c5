"""Networks that go on learning on another board size."""

import pytest
import torch

from tengen.errors import UsageError
from tengen.games import make
from tengen.models.load import is_other_size
from tengen.nets import ResNetConfig, board_of
from tengen.nets.lines import LinesConfig
from tengen.nets.minigo import MinigoConfig
from tengen.nets.modules.board_size import on_board
from tests.refusals import refused


def signature(task):
    return board_of(make(task)).signature


@pytest.mark.parametrize(
    ("config", "small", "large"),
    [
        (ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True), "go/5", "go/7"),
        (ResNetConfig(num_blocks=2, num_channels=8), "gomoku/6", "gomoku/9"),
        (LinesConfig(num_channels=16), "gomoku/6", "gomoku/9"),
    ],
)
def test_a_network_has_its_weights_on_every_board(config, small, large):
    torch.manual_seed(1)
    net = config.build(signature(small)).eval()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    moved = on_board(net, signature(large))
    planes = torch.zeros(2, *signature(large).inputs["planes"].shape)
    planes[:, 0] = 1
    outputs, _ = moved.answer({"planes": planes}, {})
    assert outputs["policy"].shape == (2, signature(large).board.num_actions)
    back = on_board(moved, signature(small))
    names = [name for name in net.state_dict() if ".score." not in name]
    for name in names:
        assert torch.equal(moved.state_dict()[name], net.state_dict()[name])
    for name, tensor in net.state_dict().items():
        assert torch.equal(back.state_dict()[name], tensor)
    assert (len(names) < len(net.state_dict())) == (small == "go/5")


def test_scores_that_only_the_large_board_has_are_improbable():
    torch.manual_seed(1)
    config = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True)
    net = config.build(signature("go/5"))
    torch.nn.init.normal_(net.auxiliary_heads.score.bias)
    moved = on_board(net, signature("go/9"))
    old, new = net.auxiliary_heads.score, moved.auxiliary_heads.score
    rest = (len(new.bias) - len(old.bias)) // 2
    assert torch.equal(new.bias[rest:-rest], old.bias)
    assert torch.equal(new.weight[rest:-rest], old.weight)
    assert (new.bias[:rest] == old.bias.min()).all()
    assert not new.weight[-rest:].any()


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        ("go/5", "go/9", True),
        ("go/9", "go/5x9", True),
        ("go/9", "go/9", False),
        ("gomoku/9", "go/5", False),
        ("connect4", "gomoku/9", False),
    ],
)
def test_a_board_of_another_size(found, wanted, expected):
    assert is_other_size(signature(found), signature(wanted)) == expected


def test_a_network_with_weights_for_a_board_size_is_refused():
    net = MinigoConfig().build(signature("go/5/planes=minigo"))
    with refused(UsageError, "net.kind (minigo)", "board size"):
        on_board(net, signature("go/7/planes=minigo"))
