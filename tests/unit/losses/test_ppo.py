"""The losses of proximal policy optimization against worked arrays."""

import math

import pytest
import torch

from tengen.losses import (
    approximate_kl,
    clipped_surrogate_loss,
    clipped_value_loss,
    explained_variance,
    is_clipped,
    normalise,
)


def test_the_surrogate_and_its_gradient_in_every_case():
    # ratio, advantage, loss, whether there is a gradient:
    cases = [
        (1.0, 2.0, -2.0, True),
        (1.5, 2.0, -1.2 * 2.0, False),  # far enough towards a good action
        (0.5, 2.0, -0.5 * 2.0, True),  # away from a good action: pulled back
        (1.5, -2.0, 1.5 * 2.0, True),  # towards a bad action: pulled back
        (0.5, -2.0, 0.8 * 2.0, False),  # far enough away from a bad action
    ]
    ratios, advantages, expected, is_pushed = zip(*cases, strict=True)
    behaviour = torch.full((5, 1), -1.0, requires_grad=True)
    log_prob = (torch.tensor(ratios).log()[:, None] - 1.0).requires_grad_()
    fixed = torch.tensor(advantages)[:, None].requires_grad_()
    loss = clipped_surrogate_loss(log_prob, behaviour, fixed, 0.2)
    torch.testing.assert_close(loss, torch.tensor(expected)[:, None])
    loss.sum().backward()
    assert log_prob.grad is not None
    # d(-ratio * advantage) / d(log_prob) = -ratio * advantage
    slopes = [
        loss if pushed else 0.0
        for loss, pushed in zip(expected, is_pushed, strict=True)
    ]
    torch.testing.assert_close(log_prob.grad, torch.tensor(slopes)[:, None])
    assert behaviour.grad is None
    assert fixed.grad is None


@pytest.mark.parametrize("advantage", [1.0, -1.0, 0.0])
def test_a_ratio_beyond_float32_gives_finite_losses(advantage):
    log_prob = torch.tensor([[300.0, -300.0, -1e30]], requires_grad=True)
    behaviour = torch.zeros(1, 3)
    advantages = torch.full((1, 3), advantage)
    loss = clipped_surrogate_loss(log_prob, behaviour, advantages, 0.2)
    loss.sum().backward()
    assert loss.isfinite().all()
    assert log_prob.grad.isfinite().all()
    assert approximate_kl(log_prob, behaviour).isfinite().all()


def test_the_value_loss_is_that_of_the_farther_value():
    # behaviour 1, clip 0.5. v 3 is clipped to 1.5: returns 4 -> max(1, 2.5^2)/2;
    # returns 0 -> max(9, 1.5^2)/2. v 1.25 is not clipped: (1.25 - 4)^2 / 2.
    v = torch.tensor([[3.0, 3.0, 1.25]], requires_grad=True)
    behaviour, returns = torch.ones(1, 3), torch.tensor([[4.0, 0.0, 4.0]])
    loss = clipped_value_loss(v, behaviour, returns, 0.5)
    assert loss.tolist() == [[3.125, 4.5, 3.78125]]
    loss.sum().backward()
    assert v.grad.tolist() == [[0.0, 3.0, -2.75]]
    plain = clipped_value_loss(v, behaviour, returns, None)
    assert plain.tolist() == [[0.5, 4.5, 3.78125]]


def test_the_estimate_of_the_divergence():
    # Two actions: actor (1/2, 1/2), learner (1/4, 3/4). The mean over the actor's
    # actions is KL = log 2 / 2 + log(2/3) / 2; each estimate is nonnegative.
    learner, actor = (
        torch.tensor([[0.25, 0.75]]).log(),
        torch.tensor([[0.5, 0.5]]).log(),
    )
    rows = approximate_kl(learner, actor)
    # ratio 1/2: 1/2 - 1 + log 2;  ratio 3/2: 3/2 - 1 - log 3/2
    expected = torch.tensor([[math.log(2.0) - 0.5, 0.5 - math.log(1.5)]])
    torch.testing.assert_close(rows, expected)
    divergence = 0.5 * math.log(2.0) + 0.5 * math.log(2.0 / 3.0)
    assert rows.mean().item() == pytest.approx(divergence, rel=1e-5)
    assert (rows >= 0).all()
    assert approximate_kl(learner, learner).tolist() == [[0.0, 0.0]]


def test_ratios_beyond_the_clip_are_told_on_both_sides():
    ratios = torch.tensor([[1.0, 1.19, 1.21, 0.81, 0.79]])
    behaviour = torch.full((1, 5), -2.0)
    found = is_clipped(ratios.log() - 2.0, behaviour, 0.2)
    assert found.tolist() == [[False, False, True, False, True]]


def test_rows_that_reset_do_not_count_when_advantages_are_normalised():
    # 1, 3, 5 have mean 3 and standard deviation sqrt(8/3); other rows are ignored.
    advantages = torch.tensor([[1.0, 0.0], [3.0, torch.nan], [0.0, 5.0]])
    is_live = torch.tensor([[1, 0], [1, 0], [0, 1]], dtype=torch.bool)
    found = normalise(advantages, is_live)
    far = 2.0 / math.sqrt(8.0 / 3.0)
    expected = torch.tensor([[-far, 0.0], [0.0, 0.0], [0.0, far]])
    torch.testing.assert_close(found, expected)
    assert normalise(torch.full((3, 2), 4.0), is_live).tolist() == [[0.0, 0.0]] * 3
    assert normalise(advantages, torch.zeros_like(is_live)).isfinite().all()


def test_explained_variance_is_what_values_leave_unexplained():
    returns = torch.tensor([1.0, 2.0, 3.0, 6.0])
    assert float(explained_variance(returns + 5.0, returns)) == 1.0
    assert float(explained_variance(torch.zeros(4), returns)) == 0.0
    # Errors 1, 1, -1, -1 have variance 1; the returns have variance 3.5.
    values = returns - torch.tensor([1.0, 1.0, -1.0, -1.0])
    explained = float(explained_variance(values, returns))
    assert explained == pytest.approx(1 - 1 / 3.5)


@pytest.mark.parametrize("num_rows", [0, 1, 3])
def test_returns_that_do_not_vary_are_not_explained(num_rows):
    returns = torch.full((num_rows,), 2.0)
    assert float(explained_variance(torch.arange(num_rows) * 1.0, returns)) == 0
