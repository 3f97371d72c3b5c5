"""Losses of the auxiliary heads, which are used only in training.

Source: Wu 2019, "Accelerating Self-Play Learning in Go", appendix B; KataGo
(lightvector/KataGo) for values at several horizons and the lead. Differs from them: the
value at a horizon is one logit, and neither the spread of the score nor the network's
own errors are estimated.

Legend: B batch, A actions, N horizons, H W board, S points of the score. Everything is
from the side to move.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = [
    "horizon_cross_entropy",
    "lead_huber",
    "mean_score_huber",
    "ownership_cross_entropy",
    "reply_cross_entropy",
    "score_distribution",
    "score_losses",
]

# Errors in points up to which the Huber losses of mean score and lead are squared;
# beyond, they are linear.
_MEAN_SCORE_POINTS = 12.0
_LEAD_POINTS = 8.0


def reply_cross_entropy(logits: Tensor, board: Tensor, reply: Tensor) -> Tensor:
    """Returns ``[B]`` float32, the cross-entropy over the actions on the board.

    Args:
        logits: ``[B, A]`` float32.
        board: ``[B, H, W]`` float32, 1 on the board.
        reply: ``[B, A]`` float32, sums to 1, or zeros for a loss of zero.
    """
    num_cells = board.shape[1] * board.shape[2]
    if logits.shape[1] in (num_cells, num_cells + 1):
        is_beyond = board.flatten(1) == 0
        lowest = torch.finfo(logits.dtype).min
        cells = logits[:, :num_cells].masked_fill(is_beyond, lowest)
        logits = torch.cat([cells, logits[:, num_cells:]], dim=1)
    log_policy = logits.log_softmax(dim=1)
    # Beyond the board the target is 0 and the logarithm may be infinite.
    return -(reply * log_policy.clamp_min(-1e4)).sum(dim=1)


def horizon_cross_entropy(logits: Tensor, values: Tensor) -> Tensor:
    """Returns ``[B]`` float32, the mean cross-entropy over the horizons.

    Args:
        logits: ``[B, N]`` float32.
        values: ``[B, N]`` float32 in [-1, 1].
    """
    loss = functional.binary_cross_entropy_with_logits(
        logits, (1.0 + values) / 2.0, reduction="none"
    )
    return loss.mean(dim=1)


def ownership_cross_entropy(logits: Tensor, board: Tensor, owners: Tensor) -> Tensor:
    """Returns ``[B]`` float32, the mean cross-entropy over the cells of each board.

    Args:
        logits: ``[B, H, W]`` float32.
        board: ``[B, H, W]`` float32, 1 on the board.
        owners: ``[B, H, W]`` float32 in [-1, 1], 1 for the side to move, 0 for nobody.
    """
    loss = functional.binary_cross_entropy_with_logits(
        logits, (1.0 + owners) / 2.0, reduction="none"
    )
    return (loss * board).sum((1, 2)) / board.sum((1, 2))


def score_distribution(score: Tensor, num_points: int) -> Tensor:
    """Returns ``[B, 2 * num_points]`` float32, a score as a distribution over points.

    Entry i is i - num_points + 0.5 points. A score between two entries is divided
    between them in proportion; a score beyond the last entry counts as the last.

    Args:
        score: ``[B]`` float32 points.
        num_points: S.
    """
    place = (score + num_points - 0.5).clamp(0.0, 2.0 * num_points - 1.0)
    lower = place.floor()
    share = (place - lower)[:, None]
    size = 2 * num_points
    first = functional.one_hot(lower.long(), size).float()
    second = functional.one_hot(place.ceil().long(), size).float()
    return torch.lerp(first, second, share)


def score_losses(logits: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Returns two losses ``[B]`` float32, of the distribution and of its sums.

    The first is a cross-entropy. The second is the sum of squared differences between
    the cumulative distributions, so that scores near the right one cost little.

    Args:
        logits: ``[B, 2S]`` float32.
        score: ``[B]`` float32 points.
    """
    target = score_distribution(score, logits.shape[1] // 2)
    exact = -(target * logits.log_softmax(dim=1)).sum(dim=1)
    error = (logits.softmax(dim=1) - target).cumsum(dim=1)
    return exact, error.square().sum(dim=1)


def mean_score_huber(mean_score: Tensor, score: Tensor) -> Tensor:
    """Returns ``[B]`` float32, half the squared error in points, linear beyond 12.

    Args:
        mean_score: ``[B]`` float32 points.
        score: ``[B]`` float32 points.
    """
    return functional.huber_loss(
        mean_score, score, delta=_MEAN_SCORE_POINTS, reduction="none"
    )


def lead_huber(lead: Tensor, target: Tensor) -> Tensor:
    """Returns ``[B]`` float32, half the squared error in points, linear beyond 8.

    Args:
        lead: ``[B]`` float32 points.
        target: ``[B]`` float32 points.
    """
    return functional.huber_loss(lead, target, delta=_LEAD_POINTS, reduction="none")
