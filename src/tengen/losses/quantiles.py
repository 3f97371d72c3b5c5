"""The loss of quantiles of returns.

Source: Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement
Learning" (arXiv:1806.06923), equations 3 and 4.

Legend: B batch, N quantiles, M quantiles of targets.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

__all__ = ["quantile_huber_loss"]


def quantile_huber_loss(
    quantiles: Tensor, fractions: Tensor, targets: Tensor, huber_delta: float = 1.0
) -> Tensor:
    """Returns ``[B]``, the loss summed over quantiles and averaged over targets.

    With u = target - quantile, the loss of each pair is ``|fraction - 1[u < 0]| *
    Huber(u) / huber_delta``: a quantile with fraction 0.9 is pulled up nine times as
    hard as down.

    Args:
        quantiles: ``[B, N]``.
        fractions: ``[B, N]`` in (0, 1), the share of returns below each quantile.
        targets: ``[B, M]``; no gradient reaches them.
        huber_delta: Error beyond which the loss is linear, above 0.
    """
    wanted = targets.detach()[:, None, :]
    answers = quantiles[:, :, None].expand(-1, -1, targets.shape[1])
    huber = functional.huber_loss(
        answers, wanted.expand_as(answers), delta=huber_delta, reduction="none"
    )
    is_below = (wanted < answers.detach()).to(huber.dtype)
    weights = (fractions[:, :, None] - is_below).abs()
    return (weights * huber / huber_delta).mean(2).sum(1)
