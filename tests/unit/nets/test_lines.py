"""The network of line patterns, compared with one that looks at each line by itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tengen import games
from tengen.errors import UsageError
from tengen.nets import ResNetConfig, board_of
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


def line_inputs(planes, cell, direction, reach):
    """Returns the inputs of a line, read from the side that comes first."""
    _, height, width = planes.shape

    def state(row, column):
        own, other = planes[1:3, row, column] > 0.5
        return 1 if own else 2 if other else 0

    def side(sign):
        """Returns 0, 1 or 2 for each cell of a side, the nearest first."""
        states = []
        for i in range(1, reach + 1):
            row, column = (
                x + sign * i * d for x, d in zip(cell, direction, strict=True)
            )
            if 0 <= row < height and 0 <= column < width:
                states.append(state(row, column))
        return states

    def place(states):
        return len(states), sum(x * 3**i for i, x in enumerate(states))

    low, high = sorted((side(-1), side(1)), key=place)
    empty_own_other_off = torch.eye(4)[:, 1:]
    before, after = (
        [empty_own_other_off[x] for x in states + [3] * (reach - len(states))]
        for states in (low, high)
    )
    centre = empty_own_other_off[state(*cell)]
    return torch.cat([*before[::-1], centre, *after])


def expected(net, planes):
    """Returns the outputs for one position, computed cell by cell and line by line."""
    _, height, width = planes.shape
    cells = []
    for cell in ((y, x) for y in range(height) for x in range(width)):
        total = torch.zeros(net.config.num_channels)
        for direction in DIRECTIONS:
            total = total + net.line(
                line_inputs(planes, cell, direction, net.config.reach)
            )
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


def test_a_weight_that_is_not_finite_shows():
    net = built("gomoku/6")
    with torch.no_grad():
        net.line[4].bias[3] = float("nan")
    for answer in net(planes_of("gomoku/6", 2)):
        assert answer.isnan().any()


def test_it_is_equivariant_under_all_symmetries():
    net = built("gomoku/7")
    planes = planes_of("gomoku/7", 5)
    policy, value = net(planes)
    boards = policy.reshape(5, 7, 7)
    for turns in range(4):
        for flips in ([], [2]):
            seen = torch.rot90(planes, turns, (2, 3)).flip(flips)
            wanted = torch.rot90(boards, turns, (1, 2)).flip([x - 1 for x in flips])
            found = net(seen)
            assert torch.allclose(found[0], wanted.flatten(1), atol=1e-5)
            assert torch.allclose(found[1], value, atol=1e-5)


@pytest.mark.parametrize("size", [(16, 48), (32, 32), (48, 64)])
def test_growing_keeps_outputs_and_new_channels_learn(size):
    net, planes = built("gomoku/6", reach=2), planes_of("gomoku/6", 4)
    config = replace(net.config, num_hidden=size[0], num_channels=size[1])
    assert net.config.grown(config) == config
    grown = net.grown(config)
    for one, other in zip(net(planes), grown(planes), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    grown(planes)[0].square().sum().backward()
    # From a new unit to an old feature, and from the context to a new feature.
    assert grown.line[4].weight.grad[:32, 16:].ne(0).any() == (size[0] > 16)
    assert grown.policy.weight.grad[32:].ne(0).any() == (size[1] > 32)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (LinesConfig(num_hidden=16, num_channels=16), "num_channels (16)"),
        (LinesConfig(num_hidden=16, num_channels=32, reach=3), "reach (3)"),
        (ResNetConfig(num_blocks=2, num_channels=32), "net.kind (resnet)"),
    ],
)
def test_into_what_it_does_not_grow(config, message):
    net = built("gomoku/6", reach=2)
    with refused(UsageError, message):
        net.grown(config)


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
        ("gomoku/9", {"reach": 5, "num_channels": 352}, "at most 336 with reach 5"),
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
