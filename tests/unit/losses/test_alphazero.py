"""The self-play losses against worked arrays."""

import math

import torch

from tengen.losses import policy_cross_entropy, value_cross_entropy, value_squared_error


def test_policy_cross_entropy_of_worked_rows():
    # Row 0: softmax over the two legal actions is (1/4, 3/4). Row 1: one legal action.
    logits = torch.tensor([[0.0, math.log(3.0), 9.0], [5.0, 1.0, -2.0]])
    legal = torch.tensor([[1, 1, 0], [0, 0, 1]], dtype=torch.uint8)
    target = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    expected = [0.5 * math.log(4.0) + 0.5 * math.log(4.0 / 3.0), 0.0]
    loss = policy_cross_entropy(logits, legal, target)
    torch.testing.assert_close(loss, torch.tensor(expected))


def test_illegal_actions_get_no_gradient_and_an_empty_target_costs_nothing():
    logits = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    legal = torch.tensor([[1, 1, 0], [1, 1, 1]], dtype=torch.uint8)
    target = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    loss = policy_cross_entropy(logits, legal, target)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    assert loss[1] == 0
    assert gradient[0, 2] == 0
    assert (gradient[1] == 0).all()
    assert gradient.isfinite().all()


def test_value_cross_entropy_of_worked_rows():
    # Probabilities (1/2, 1/4, 1/4).
    logits = torch.tensor([[math.log(2.0), 0.0, 0.0]]).repeat(3, 1)
    outcome = torch.eye(3)
    log_half, log_quarter = math.log(2.0), math.log(4.0)
    alone = value_cross_entropy(logits, outcome, torch.zeros(3), 0.0)
    torch.testing.assert_close(
        alone, torch.tensor([log_half, log_quarter, log_quarter])
    )
    # Row 0, value 0.5: search (0.75, 0, 0.25), target (0.875, 0, 0.125).
    # Row 1, drawn, value -0.5: search (0, 0.5, 0.5), target (0, 0.75, 0.25).
    # Row 2, lost, value -1: the target is the outcome.
    values = torch.tensor([0.5, -0.5, -1.0])
    mixed = value_cross_entropy(logits, outcome, values, 0.5)
    expected = [0.875 * log_half + 0.125 * log_quarter, log_quarter, log_quarter]
    torch.testing.assert_close(mixed, torch.tensor(expected))


def test_value_target_always_has_the_mean_of_the_search_value():
    # The gradient of the cross-entropy in the logits is probabilities minus target.
    logits = torch.zeros(12, 3, requires_grad=True)
    outcome = torch.eye(3).repeat(4, 1)
    values = torch.linspace(-1, 1, 12)
    loss = value_cross_entropy(logits, outcome, values, 1.0)
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    target = 1.0 / 3.0 - gradient
    assert (target >= -1e-6).all()
    torch.testing.assert_close(target.sum(1), torch.ones(12))
    torch.testing.assert_close(target[:, 0] - target[:, 2], values)


def test_without_a_mask_illegal_actions_are_learned_too():
    logits = torch.tensor([[0.0, math.log(3.0), math.log(4.0)]], requires_grad=True)
    target = torch.tensor([[0.5, 0.5, 0.0]])
    loss = policy_cross_entropy(logits, None, target)
    # The softmax is (1, 3, 4) / 8.
    expected = 0.5 * math.log(8.0) + 0.5 * math.log(8.0 / 3.0)
    torch.testing.assert_close(loss, torch.tensor([expected]))
    (gradient,) = torch.autograd.grad(loss.sum(), logits)
    torch.testing.assert_close(
        gradient, torch.tensor([[1 / 8 - 0.5, 3 / 8 - 0.5, 4 / 8]])
    )


def test_value_squared_error_of_worked_rows():
    # Logits (2x, -128, 0) have the mean tanh(x); here 0.6, 0.6 and -0.6.
    x = math.atanh(0.6)
    logits = torch.tensor([[2 * x, -128.0, 0.0]] * 2 + [[-2 * x, -128.0, 0.0]])
    outcome = torch.eye(3)
    alone = value_squared_error(logits, outcome, torch.zeros(3), 0.0)
    torch.testing.assert_close(alone, torch.tensor([0.4**2, 0.6**2, 0.4**2]))
    # Targets 1, 0, -1, each averaged with 0.2: 0.6, 0.1, -0.4.
    mixed = value_squared_error(logits, outcome, torch.full((3,), 0.2), 0.5)
    torch.testing.assert_close(mixed, torch.tensor([0.0, 0.25, 0.04]))


def test_value_squared_error_has_the_gradient_of_tanh():
    x = torch.tensor([0.3, -1.2], requires_grad=True)
    logits = torch.stack([2 * x, torch.full_like(x, -128.0), torch.zeros(2)], dim=1)
    outcome = torch.tensor([[1.0, 0, 0], [0, 0, 1.0]])
    loss = value_squared_error(logits, outcome, torch.zeros(2), 0.0)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    y, z = x.detach().tanh(), torch.tensor([1.0, -1.0])
    torch.testing.assert_close(gradient, 2 * (y - z) * (1 - y.square()))
