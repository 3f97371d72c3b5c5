"""Losses of the auxiliary heads of game networks, which only training uses.

Source: Wu 2019, "Accelerating Self-Play Learning in Go", appendix B; KataGo
(lightvector/KataGo) for values at several horizons and the lead. Differs from both: the
value at a horizon is one logit, and no head estimates the standard deviation of the
score or the network's own errors.

Legend: B batch, A actions, N horizons, H W board, S points of the score. All values are
for the side to move.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

# Errors beyond which the Huber losses of mean score and lead are linear, in points.
_MEAN_SCORE_POINTS = 12.0
_LEAD_POINTS = 8.0


def reply_cross_entropy(logits: Tensor, board: Tensor, reply: Tensor) -> Tensor:
    """Returns the cross-entropy of the predicted reply, ``[B]`` float32.

    Args:
        logits: ``[B, A]`` float32; those of cells beyond the board are ignored.
        board: ``[B, H, W]`` float32, 1 on the board.
        reply: ``[B, A]`` float32; each row sums to 1, or is all zeros, which gives a
            loss of 0.
    """
    num_cells = board.shape[1] * board.shape[2]
    if logits.shape[1] in (num_cells, num_cells + 1):
        is_beyond = board.flatten(1) == 0
        lowest = torch.finfo(logits.dtype).min
        cells = logits[:, :num_cells].masked_fill(is_beyond, lowest)
        logits = torch.cat([cells, logits[:, num_cells:]], dim=1)
    log_policy = logits.log_softmax(dim=1)
    # Clamp, because beyond the board the target is 0 but the logarithm may be -inf.
    return -(reply * log_policy.clamp_min(-1e4)).sum(dim=1)


def horizon_cross_entropy(logits: Tensor, values: Tensor) -> Tensor:
    """Returns the mean cross-entropy of the values at N horizons, ``[B]`` float32.

    Args:
        logits: ``[B, N]`` float32, one logit per horizon.
        values: ``[B, N]`` float32 targets in [-1, 1].
    """
    loss = functional.binary_cross_entropy_with_logits(
        logits, (1.0 + values) / 2.0, reduction="none"
    )
    return loss.mean(dim=1)


def ownership_cross_entropy(logits: Tensor, board: Tensor, owners: Tensor) -> Tensor:
    """Returns the cross-entropy of the ownership, a mean over cells, ``[B]`` float32.

    Args:
        logits: ``[B, H, W]`` float32.
        board: ``[B, H, W]`` float32, 1 on the board.
        owners: ``[B, H, W]`` float32 in [-1, 1], 1 for the side to move, 0 for neither.
    """
    loss = functional.binary_cross_entropy_with_logits(
        logits, (1.0 + owners) / 2.0, reduction="none"
    )
    return (loss * board).sum((1, 2)) / board.sum((1, 2))


def score_distribution(score: Tensor, num_points: int) -> Tensor:
    """Returns scores as distributions over points, ``[B, 2 * num_points]`` float32.

    Entry i is the probability of i - num_points + 0.5 points. A score between the
    points of two entries is divided linearly between them. Other scores are clipped.

    Args:
        score: ``[B]`` float32 points.
        num_points: Number S; the entries range from 0.5 - S to S - 0.5 points.
    """
    place = (score + num_points - 0.5).clamp(0.0, 2.0 * num_points - 1.0)
    lower = place.floor()
    share = (place - lower)[:, None]
    size = 2 * num_points
    first = functional.one_hot(lower.long(), size).float()
    second = functional.one_hot(place.ceil().long(), size).float()
    return torch.lerp(first, second, share)


def score_losses(logits: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """Returns two losses of the score distribution, arrays of shape ``[B]`` float32.

    The first loss is the cross-entropy. The second is the sum of squared differences
    between the cumulative distributions, which is small for scores near the target.

    Args:
        logits: ``[B, 2S]`` float32 logits of the predicted distribution.
        score: ``[B]`` float32 final scores in points, the target.
    """
    target = score_distribution(score, logits.shape[1] // 2)
    exact = -(target * logits.log_softmax(dim=1)).sum(dim=1)
    error = (logits.softmax(dim=1) - target).cumsum(dim=1)
    return exact, error.square().sum(dim=1)


def mean_score_huber(mean_score: Tensor, score: Tensor) -> Tensor:
    """Returns the Huber loss of the mean score, linear beyond 12 points, ``[B]``.

    Args:
        mean_score: ``[B]`` float32 predictions in points.
        score: ``[B]`` float32 targets in points.
    """
    return functional.huber_loss(
        mean_score, score, delta=_MEAN_SCORE_POINTS, reduction="none"
    )


def lead_huber(lead: Tensor, target: Tensor) -> Tensor:
    """Returns the Huber loss of the lead, linear beyond 8 points, ``[B]`` float32.

    Args:
        lead: ``[B]`` float32 predictions in points.
        target: ``[B]`` float32 targets in points.
    """
    return functional.huber_loss(lead, target, delta=_LEAD_POINTS, reduction="none")
