"""The losses of SAC against worked numbers and the distributions of torch."""

import math

import pytest
import torch

from tengen import losses


def test_a_squashed_sample_has_the_density_of_torch_s():
    torch.manual_seed(0)
    outputs, noise = 2 * torch.randn(500, 6), 2 * torch.randn(500, 3)
    action, log_prob = losses.squashed_sample(outputs, noise)
    mean, log_std = outputs.double().chunk(2, -1)
    normal = torch.distributions.Normal(mean, log_std.clamp(-20, 2).exp())
    squashed = torch.distributions.TransformedDistribution(
        normal, [torch.distributions.TanhTransform(cache_size=1)]
    )
    drawn = (mean + log_std.clamp(-20, 2).exp() * noise.double()).tanh()
    torch.testing.assert_close(action.double(), drawn, atol=1e-6, rtol=0)
    # If tanh is 1 in float64, torch's inverse loses the action; our formula does not.
    wanted = squashed.log_prob(drawn).sum(-1)
    is_known = (drawn.abs() < 1 - 1e-9).all(-1)
    assert is_known.sum() > 300
    torch.testing.assert_close(
        log_prob.double()[is_known], wanted[is_known], atol=1e-3, rtol=1e-4
    )
    assert log_prob.isfinite().all()


def test_soft_values_of_numbers_are_the_least_critic_s_less_the_log_density():
    q = torch.tensor([[1.0, 5.0], [2.0, 3.0]])
    values = losses.soft_values(q, torch.tensor([0.5, -1.0]), torch.tensor(0.2))
    torch.testing.assert_close(values, torch.tensor([1 - 0.1, 3 + 0.2]))


def test_soft_values_of_choices_are_means_over_the_policy():
    q = torch.tensor([[[1.0, 4.0]], [[2.0, 3.0]]])
    policy = torch.tensor([[0.25, 0.75]])
    values = losses.soft_values(q, policy.log(), torch.tensor(0.5))
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    wanted = 0.25 * 1 + 0.75 * 3 + 0.5 * entropy
    assert values.item() == pytest.approx(wanted)


def test_targets_and_critic_loss():
    value_t = torch.tensor([10.0, 10.0], requires_grad=True)
    targets = losses.soft_targets(
        reward=torch.tensor([1.0, 2.0]),
        terminated=torch.tensor([0, 1], dtype=torch.uint8),
        value_t=value_t,
        discount=0.9,
    )
    assert targets.tolist() == [10.0, 2.0]
    assert not targets.requires_grad
    q = torch.tensor([[11.0, 2.0], [8.0, 4.0]])
    assert losses.critic_loss(q, targets).tolist() == [0.5 + 2.0, 2.0]


@pytest.mark.parametrize(("entropy", "sign"), [(-3.0, 1.0), (-1.0, -1.0)])
def test_the_temperature_rises_where_entropy_is_too_low(entropy, sign):
    log_temperature = torch.tensor(math.log(0.5), requires_grad=True)
    given = torch.tensor([entropy], requires_grad=True)
    losses.temperature_loss(log_temperature, given, -2.0).sum().backward()
    assert given.grad is None
    # Gradient descent moves against the gradient.
    assert -log_temperature.grad.item() == pytest.approx(sign * 0.5)


def test_a_terminal_value_that_is_not_finite_is_in_no_target():
    targets = losses.soft_targets(
        reward=torch.tensor([1.0, 2.0]),
        terminated=torch.tensor([1, 1], dtype=torch.uint8),
        value_t=torch.tensor([torch.inf, torch.nan]),
        discount=0.9,
    )
    assert targets.tolist() == [1.0, 2.0]
