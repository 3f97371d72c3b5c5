"""The rescaling function and its inverse, in float32 over twelve decades."""

import math
from decimal import Decimal, localcontext

import pytest
import torch

from tengen.losses import signed_hyperbolic, signed_parabolic

# 1e-6 to 1e6, and their negatives.
DECADES = torch.logspace(-6, 6, 1201, dtype=torch.float64)
NUMBERS = torch.cat([-DECADES.flip(0), torch.zeros(1, dtype=torch.float64), DECADES])


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2, 0.0])
def test_one_undoes_the_other_in_float32(epsilon):
    x = NUMBERS.float()
    there = signed_hyperbolic(x, epsilon)
    assert there.dtype == torch.float32
    torch.testing.assert_close(signed_parabolic(there, epsilon), x, rtol=1e-6, atol=0)
    back = signed_parabolic(x, epsilon)
    torch.testing.assert_close(signed_hyperbolic(back, epsilon), x, rtol=1e-6, atol=0)


def test_float32_agrees_with_the_formulas_of_the_paper_in_long_arithmetic():
    epsilon = Decimal("0.001")
    for number in NUMBERS.float()[::40].tolist():
        with localcontext(prec=50):
            x = Decimal(number)
            sign = Decimal(1).copy_sign(x)
            h = sign * ((abs(x) + 1).sqrt() - 1) + epsilon * x
            root = (1 + 4 * epsilon * (abs(x) + 1 + epsilon)).sqrt()
            inverse = sign * (((root - 1) / (2 * epsilon)) ** 2 - 1)
        found = signed_hyperbolic(torch.tensor(number), 1e-3).item()
        assert found == pytest.approx(float(h), rel=5e-7, abs=0), number
        found = signed_parabolic(torch.tensor(number), 1e-3).item()
        assert found == pytest.approx(float(inverse), rel=5e-7, abs=0), number


def test_worked_values():
    # sqrt(4) - 1 + 0.003, sqrt(9) - 1 + 0.008, sqrt(10^6) - 1 + 999.999
    x = torch.tensor([3.0, -8.0, 999999.0])
    expected = torch.tensor([1.003, -2.008, 1998.999])
    torch.testing.assert_close(signed_hyperbolic(x, 1e-3), expected)
    torch.testing.assert_close(signed_parabolic(expected, 1e-3), x)


def test_slopes_at_zero_are_right():
    x = torch.zeros(1, requires_grad=True)
    (slope,) = torch.autograd.grad(signed_hyperbolic(x, 1e-3), x)
    assert math.isclose(slope.item(), 0.501, rel_tol=1e-6)
    (slope,) = torch.autograd.grad(signed_parabolic(x, 1e-3), x)
    assert math.isclose(slope.item(), 1 / 0.501, rel_tol=1e-6)
