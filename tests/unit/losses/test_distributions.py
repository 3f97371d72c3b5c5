"""Distributions of actions against torch.distributions and worked arrays."""

import math

import pytest
import torch

from tengen.losses import make_distribution


def test_one_choice_of_a_worked_row():
    # Probabilities 1/4 and 3/4.
    distribution = make_distribution((2,), ())
    outputs = torch.tensor([[0.0, math.log(3.0)], [5.0, 5.0 + math.log(3.0)]])
    log_prob = distribution.log_prob(outputs, torch.tensor([0, 1]))
    torch.testing.assert_close(log_prob, torch.tensor([0.25, 0.75]).log())
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    torch.testing.assert_close(
        distribution.entropy(outputs), torch.tensor([entropy, entropy])
    )


def test_several_choices_are_independent():
    distribution = make_distribution((2, 1, 4), (3,))
    generator = torch.Generator().manual_seed(3)
    outputs = 2.0 * torch.randn(5, 6, 7, generator=generator)
    parts = [outputs[..., :2], outputs[..., 2:3], outputs[..., 3:]]
    found = [torch.distributions.Categorical(logits=part) for part in parts]
    actions = torch.stack(
        [torch.randint(n, (5, 6), generator=generator) for n in (2, 1, 4)], dim=-1
    )
    torch.testing.assert_close(
        distribution.log_prob(outputs, actions),
        sum(one.log_prob(actions[..., i]) for i, one in enumerate(found)),
    )
    torch.testing.assert_close(
        distribution.entropy(outputs), sum(one.entropy() for one in found)
    )


def test_one_part_may_have_an_axis_of_its_own():
    outputs = torch.tensor([[0.0, math.log(3.0)]])
    bare = make_distribution((2,), ()).log_prob(outputs, torch.tensor([1]))
    axis = make_distribution((2,), (1,)).log_prob(outputs, torch.tensor([[1]]))
    assert torch.equal(bare, axis)


def test_real_numbers_are_independent_gaussians():
    distribution = make_distribution((), (3,))
    generator = torch.Generator().manual_seed(3)
    outputs = 0.5 * torch.randn(5, 6, 6, generator=generator)
    normal = torch.distributions.Normal(outputs[..., :3], outputs[..., 3:].exp())
    actions = torch.randn(5, 6, 3, generator=generator)
    torch.testing.assert_close(
        distribution.log_prob(outputs, actions), normal.log_prob(actions).sum(-1)
    )
    torch.testing.assert_close(distribution.entropy(outputs), normal.entropy().sum(-1))


def test_one_real_number_has_no_axis():
    # The density of the standard normal at 1 is exp(-1/2) / sqrt(2 pi).
    outputs = torch.tensor([[2.0, 0.0]])
    log_prob = make_distribution((), ()).log_prob(outputs, torch.tensor([3.0]))
    expected = -0.5 - 0.5 * math.log(2.0 * math.pi)
    torch.testing.assert_close(log_prob, torch.tensor([expected]))


def test_standard_deviations_have_bounds():
    distribution = make_distribution((), (1,))
    outputs = torch.tensor([[0.0, 50.0], [0.0, 2.0], [0.0, -50.0], [0.0, -20.0]])
    entropy = distribution.entropy(outputs)
    assert entropy[0] == entropy[1]
    assert entropy[2] == entropy[3]
    log_prob = distribution.log_prob(outputs, torch.zeros(4, 1))
    assert log_prob[0] == log_prob[1]
    assert log_prob[2] == log_prob[3]


@pytest.mark.parametrize(
    ("num_choices", "shape", "outputs", "action"),
    [
        ((2,), (), [3e38, -3e38], 1),
        ((2,), (), [1e4, -1e4], 1),
        ((2, 2), (2,), [3e38, -3e38, 3e38, -3e38], [1, 1]),
        ((), (), [0.0, -20.0], 1e12),
        ((), (2,), [-1e25, 0.0, 0.0, 0.0], [1e25, 0.0]),
    ],
)
def test_extreme_outputs_give_finite_numbers_and_gradients(
    num_choices, shape, outputs, action
):
    distribution = make_distribution(num_choices, shape)
    row = torch.tensor([outputs], requires_grad=True)
    log_prob = distribution.log_prob(row, torch.tensor([action]))
    entropy = distribution.entropy(row)
    assert log_prob.isfinite().all()
    assert entropy.isfinite().all()
    assert log_prob.item() < -1e3
    (gradient,) = torch.autograd.grad((0.0 * log_prob + entropy).sum(), row)
    assert gradient.isfinite().all()
