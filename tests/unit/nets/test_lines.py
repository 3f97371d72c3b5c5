"""The network of line patterns, compared with one that looks at each line by itself."""

import numpy as np
import pytest
import torch

from tengen import games
from tengen.errors import UsageError
from tengen.nets import board_of
from tengen.nets.lines import LinesConfig
from tengen.tensors import BoardSpec
from tests.refusals import refused

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


def built(task, **settings):
    torch.manual_seed(3)
    config = LinesConfig(num_hidden=16, num_channels=32, **settings)
    return config.build(board_of(games.make(task)).signature)


def planes_of(task, num_rows, seed=0):
    """Returns positions of random games, ``[num_rows, C, H, W]``."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < num_rows:
        state = games.make(task).new_state()
        for _ in range(rng.integers(games.make(task).max_plies)):
            if not state.is_terminal():
                state.apply(int(rng.choice(state.legal_actions())))
        rows.append(state.observation())
    return torch.from_numpy(np.stack(rows))


def expected(net, planes):
    """Returns the outputs for one position, computed cell by cell and line by line."""
    reach = net.config.reach
    _, height, width = planes.shape
    cells = []
    for y in range(height):
        for x in range(width):
            total = torch.zeros(net.config.num_channels)
            for down, across in DIRECTIONS:
                inputs = []
                for i in range(-reach, reach + 1):
                    row, column = y + i * down, x + i * across
                    if 0 <= row < height and 0 <= column < width:
                        own, other = planes[1, row, column], planes[2, row, column]
                        inputs += [float(own), float(other), 0.0]
                    else:
                        inputs += [0.0, 0.0, 1.0]
                total = total + net.line(torch.tensor(inputs))
            cells.append(total.relu())
    seen = torch.stack(cells)
    others = planes[3:].mean((1, 2))
    context = net.context(torch.cat([seen.mean(0), seen.amax(0), others])).relu()
    return seen @ net.policy(context), net.value(context)


@pytest.mark.parametrize(
    ("task", "reach"), [("tictactoe", 1), ("gomoku/6", 2), ("gomoku/7", 4)]
)
@pytest.mark.parametrize("training", [False, True])
def test_outputs_are_those_of_single_lines(task, reach, training):
    net = built(task, reach=reach).train(training)
    planes = planes_of(task, 4)
    policy, value = net(planes)
    for row in range(4):
        logits, outcome = expected(net, planes[row])
        assert torch.allclose(policy[row], logits, atol=1e-5)
        assert torch.allclose(value[row], outcome, atol=1e-5)


def test_gradients_are_those_of_single_lines():
    """Equal patterns share an evaluation, whose gradient is the sum of all its uses."""
    net = built("gomoku/5", reach=2)
    planes = planes_of("gomoku/5", 3)
    policy, value = net(planes)
    (policy.square().sum() + value.square().sum()).backward()
    found = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()
    for row in range(3):
        logits, outcome = expected(net, planes[row])
        (logits.square().sum() + outcome.square().sum()).backward()
    for name, parameter in net.named_parameters():
        assert torch.allclose(found[name], parameter.grad, rtol=1e-4, atol=1e-4), name


def test_weights_fit_boards_of_any_size():
    """A network of a small board plays on a large one, with the same weights."""
    small, large = built("gomoku/6"), built("gomoku/9")
    large.load_state_dict(small.state_dict())
    planes = planes_of("gomoku/9", 2)
    assert torch.equal(small(planes)[0], large(planes)[0])


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("gomoku/9", {"num_channels": 24}, "num_channels (24) must be a multiple"),
        ("gomoku/9", {"num_hidden": 0}, "num_hidden (0) must be a multiple of 16"),
        ("gomoku/9", {"reach": 6}, "reach (6)"),
        ("gomoku/9", {"reach": 5, "num_channels": 256}, "at most 168 with reach 5"),
        ("go/9", {}, "net.kind (lines) needs a game whose actions are cells"),
        ("connect4", {}, "net.kind (lines) needs a game whose actions are cells"),
    ],
)
def test_what_does_not_fit_is_refused(task, settings, message):
    with refused(UsageError, message):
        LinesConfig(**settings).signature(board_of(games.make(task)).signature)


def test_a_large_board_is_refused():
    board = BoardSpec(
        num_planes=3, height=20, width=9, num_actions=180, policy_layout="cells"
    )
    with refused(UsageError, "needs a board of at most 19x19, not 20x9"):
        LinesConfig().signature(board.signature)
