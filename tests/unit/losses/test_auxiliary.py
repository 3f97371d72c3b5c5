"""The auxiliary losses against worked arrays."""

import math

import torch

from tengen.losses import (
    horizon_cross_entropy,
    lead_huber,
    mean_score_huber,
    ownership_cross_entropy,
    reply_cross_entropy,
    score_distribution,
    score_losses,
)


def test_a_reply_is_compared_on_the_board():
    # One row of three cells, the last outside the board, and a pass.
    board = torch.tensor([[[1.0, 1.0, 0.0]]])
    logits = torch.tensor([[0.0, math.log(2.0), 50.0, 0.0]], requires_grad=True)
    loss = reply_cross_entropy(logits, board, torch.tensor([[0.0, 0.5, 0.0, 0.5]]))
    expected = 0.5 * math.log(2.0) + 0.5 * math.log(4.0)
    torch.testing.assert_close(loss, torch.tensor([expected]))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    torch.testing.assert_close(gradient, torch.tensor([[0.25, 0.0, 0.0, -0.25]]))
    nothing = reply_cross_entropy(logits, board, torch.zeros(1, 4))
    assert nothing.tolist() == [0.0]


def test_a_horizon_is_a_chance_to_win():
    logits = torch.tensor([[0.0, math.log(3.0)]])
    loss = horizon_cross_entropy(logits, torch.tensor([[1.0, 0.0]]))
    second = -0.5 * math.log(0.75) - 0.5 * math.log(0.25)
    torch.testing.assert_close(loss, torch.tensor([(math.log(2.0) + second) / 2]))


def test_ownership_is_a_mean_over_the_board():
    board = torch.tensor([[[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    logits = torch.tensor([[[0.0, math.log(3.0), 9.0]], [[0.0, 9.0, 9.0]]])
    owners = torch.tensor([[[0.0, -1.0, 0.0]], [[1.0, 0.0, 0.0]]])
    loss = ownership_cross_entropy(logits, board, owners)
    first = (math.log(2.0) + math.log(4.0)) / 2
    torch.testing.assert_close(loss, torch.tensor([first, math.log(2.0)]))


def test_a_score_lies_between_half_points():
    # The bins of two points are centred at -1.5, -0.5, 0.5, 1.5.
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


def test_losses_of_a_score():
    # Probabilities (1/2, 1/4, 1/8, 1/8) against the second bin.
    logits = torch.tensor([[4.0, 2.0, 1.0, 1.0]]).log()
    exact, sums = score_losses(logits, torch.tensor([-0.5]))
    torch.testing.assert_close(exact, torch.tensor([math.log(4.0)]))
    squares = 0.5**2 + 0.25**2 + 0.125**2
    torch.testing.assert_close(sums, torch.tensor([squares]))
    huber = mean_score_huber(torch.tensor([1.0, 20.0]), torch.tensor([3.0, 0.0]))
    torch.testing.assert_close(huber, torch.tensor([2.0, 12.0 * (20.0 - 6.0)]))
    lead = lead_huber(torch.tensor([1.0, -20.0]), torch.tensor([-2.0, 0.0]))
    torch.testing.assert_close(lead, torch.tensor([4.5, 8.0 * (20.0 - 4.0)]))
