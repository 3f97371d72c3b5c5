"""Rescaling of values, so that large and small returns are learned equally well.

Source: Pohlen et al. 2018, "Observe and Look Further: Achieving Consistent Performance
on Atari", "Transformed Bellman Operator"; rlax has the two functions by these names.

Differs from the paper: both functions are written without differences of nearly equal
numbers, so that in float32 each inverts the other to a few parts in ten million at any
scale.
"""

from __future__ import annotations

from torch import Tensor

__all__ = ["signed_hyperbolic", "signed_parabolic"]


def signed_hyperbolic(x: Tensor, epsilon: float) -> Tensor:
    """Returns h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x, of the shape of x.

    Args:
        x: Float32 of any shape.
        epsilon: A small number such as 1e-3, at least 0.
    """
    # sqrt(a + 1) - 1 = a / (sqrt(a + 1) + 1)
    return x * (1.0 / ((x.abs() + 1.0).sqrt() + 1.0) + epsilon)


def signed_parabolic(y: Tensor, epsilon: float) -> Tensor:
    """Returns the x whose ``signed_hyperbolic`` is y, of the shape of y.

    Args:
        y: Float32 of any shape.
        epsilon: As in ``signed_hyperbolic``.
    """
    # With u = sqrt(|x| + 1) - 1: |x| = u (u + 2) and |y| = epsilon u (u + 2) + u, so
    # u is the root of epsilon u^2 + (1 + 2 epsilon) u - |y|, written without the
    # difference: u = 2 |y| / divisor.
    size, slope = y.abs(), 1.0 + 2.0 * epsilon
    divisor = slope + (slope * slope + 4.0 * epsilon * size).sqrt()
    return 2.0 * y / divisor * (2.0 * size / divisor + 2.0)
