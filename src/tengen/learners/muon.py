"""Muon: momentum whose matrices are replaced by nearly orthogonal ones.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks",
with the coefficients of its Newton-Schulz iteration; Liu et al. 2025, "Muon is Scalable
for LLM Training", for the scale of the update and the weight decay.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Coefficients of the quintic iteration (Jordan et al. 2024), which brings singular
# values close to 1 in five steps.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_NUM_ITERATIONS = 5
# Root mean square of an update of AdamW, to which Liu et al. scale that of Muon.
_UPDATE_RMS = 0.2


def orthogonalized(matrices: Tensor) -> Tensor:
    """Returns matrices with the same singular vectors and singular values near 1.

    Args:
        matrices: ``[N, M, K]`` float32.
    """
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    for _ in range(_NUM_ITERATIONS):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * (gram @ gram)) @ x
    result: Tensor = x.mT if is_tall else x
    return result


def muon(
    parameters: list[Tensor],
    gradients: list[Tensor],
    velocities: list[Tensor],
    *,
    rate: float,
    momentum: float,
    weight_decay: float,
) -> None:
    """Performs a step of Muon with Nesterov momentum, in place.

    The kernels of a convolution ``[M, C, H, W]`` count as a matrix ``[M, C H W]``.

    Args:
        parameters: Parameters with at least two axes.
        gradients: Their gradients.
        velocities: Their moving sums of gradients; changed in place.
        rate: The learning rate, comparable to that of AdamW.
        momentum: Factor of the velocities, in (0, 1).
        weight_decay: Decoupled weight decay.
    """
    torch._foreach_mul_(velocities, momentum)
    torch._foreach_add_(velocities, gradients)
    updates = torch._foreach_add(gradients, velocities, alpha=momentum)
    # Matrices of one shape are computed together, because those of small networks take
    # less time than the calls.
    of_shape: dict[tuple[int, int], list[int]] = {}
    for index, update in enumerate(updates):
        shape = (len(update), update.numel() // len(update))
        of_shape.setdefault(shape, []).append(index)
    for shape, indices in of_shape.items():
        flat = torch.stack([updates[index].reshape(shape) for index in indices])
        scale = rate * _UPDATE_RMS * max(shape) ** 0.5
        for index, matrix in zip(indices, orthogonalized(flat), strict=True):
            parameter = parameters[index]
            parameter.mul_(1.0 - rate * weight_decay)
            parameter.sub_(matrix.reshape(parameter.shape), alpha=scale)
