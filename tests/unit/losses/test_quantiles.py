"""The quantile loss against worked pairs, a slow reference and known quantiles."""

import numpy as np
import pytest
import torch

from tengen.losses import quantile_huber_loss


def test_worked_pairs():
    quantiles = torch.tensor([[1.0, 4.0]])
    fractions = torch.tensor([[0.25, 0.9]])
    targets = torch.tensor([[1.5, 8.0]])
    # Errors 0.5 and 7 for the first quantile, -2.5 and 4 for the second.
    first = (0.25 * 0.125 + 0.25 * 6.5) / 2
    second = (0.1 * 2.0 + 0.9 * 3.5) / 2
    found = quantile_huber_loss(quantiles, fractions, targets)
    assert found.tolist() == pytest.approx([first + second])


def test_the_slow_reference_agrees():
    rng = np.random.default_rng(3)
    quantiles, targets = rng.normal(size=(4, 5)), rng.normal(size=(4, 7))
    fractions = rng.random((4, 5))
    wanted = np.zeros(4)
    for b in range(4):
        for i in range(5):
            for target in targets[b]:
                u = target - quantiles[b, i]
                huber = u**2 / 2 if abs(u) <= 1 else abs(u) - 1 / 2
                weight = abs(fractions[b, i] - float(u < 0))
                wanted[b] += weight * huber / 7
    found = quantile_huber_loss(
        torch.tensor(quantiles), torch.tensor(fractions), torch.tensor(targets)
    )
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_its_least_is_at_the_quantiles_of_the_targets():
    targets = torch.linspace(0, 100, 1001)[None]
    fractions = torch.tensor([[0.1, 0.5, 0.9]])

    def slopes(shift):
        answers = torch.tensor([[10.0, 50.0, 90.0]]) + shift
        answers.requires_grad_()
        quantile_huber_loss(answers, fractions, targets).sum().backward()
        return answers.grad[0]

    assert (slopes(-1.5) < 0).all()
    assert (slopes(1.5) > 0).all()


def test_no_gradient_reaches_the_targets():
    targets = torch.ones(2, 3, requires_grad=True)
    answers = torch.zeros(2, 3, requires_grad=True)
    quantile_huber_loss(answers, torch.full((2, 3), 0.5), targets).sum().backward()
    assert targets.grad is None
    assert answers.grad is not None
