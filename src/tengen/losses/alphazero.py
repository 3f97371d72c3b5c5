"""Policy and value losses for learning from self-play with tree search.

Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters
chess, shogi, and Go through self-play", equation (1).

Differs from the paper: the value is a distribution over win, draw and loss. It is
trained with cross-entropy, or with the squared error of its mean as in the paper. The
value target may include the search's value, and rows have weights. The paper's L2 term
is the optimizer's weight decay.

Legend: B batch, A actions. Values are those of the side to move.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def policy_cross_entropy(
    policy_logits: Tensor, legal: Tensor | None, policy_target: Tensor
) -> Tensor:
    """Returns the policy's cross-entropy over the legal actions, ``[B]`` float32.

    Args:
        policy_logits: ``[B, A]`` float32.
        legal: ``[B, A]`` uint8 or bool, nonzero for legal actions; None for the
            cross-entropy over all actions.
        policy_target: ``[B, A]`` float32; each row sums to 1 over its legal actions, or
            is all zeros, which gives a loss of 0.
    """
    if legal is None:
        return -(policy_target * policy_logits.log_softmax(dim=1)).sum(dim=1)
    is_legal = legal.bool()
    # Mask with the lowest finite number instead of -inf, because 0 * -inf is NaN.
    lowest = torch.finfo(policy_logits.dtype).min
    log_policy = policy_logits.masked_fill(~is_legal, lowest).log_softmax(dim=1)
    return -(policy_target * log_policy.masked_fill(~is_legal, 0.0)).sum(dim=1)


def value_cross_entropy(
    value_logits: Tensor,
    outcome: Tensor,
    search_value: Tensor,
    search_value_share: float,
) -> Tensor:
    """Returns the cross-entropy with a mix of outcome and search value, ``[B]``.

    The search estimates a mean v but no probability of a draw, so its distribution of
    win, draw and loss is assumed to be ((1 + v) / 2, 0, (1 - v) / 2). In a drawn game,
    the probability of a draw is assumed to be 1 - abs(v), the maximum for the mean v.

    Args:
        value_logits: ``[B, 3]`` float32 WDL logits (win, draw, loss).
        outcome: ``[B, 3]`` float32 distribution of win, draw, loss.
        search_value: ``[B]`` float32 in [-1, 1].
        search_value_share: Weight of the search's value in the target, in [0, 1].
    """
    draw = outcome[:, 1] * (1.0 - search_value.abs())
    win = (1.0 + search_value - draw) / 2.0
    searched = torch.stack([win, draw, 1.0 - win - draw], dim=1)
    target = torch.lerp(outcome, searched, search_value_share)
    return functional.cross_entropy(value_logits, target, reduction="none")


def value_squared_error(
    value_logits: Tensor,
    outcome: Tensor,
    search_value: Tensor,
    search_value_share: float,
) -> Tensor:
    """Returns the squared error of the mean value p(win) - p(loss), ``[B]`` float32.

    The target is a mix of the outcome, 1, 0 or -1, and the search's value. For logits
    ``(2x, -inf, 0)`` the mean value is tanh(x).

    Args:
        value_logits: ``[B, 3]`` float32 WDL logits (win, draw, loss).
        outcome: ``[B, 3]`` float32 distribution of win, draw, loss.
        search_value: ``[B]`` float32 in [-1, 1].
        search_value_share: Weight of the search's value in the target, in [0, 1].
    """
    share = value_logits.softmax(dim=1)
    ended = outcome[:, 0] - outcome[:, 2]
    target = torch.lerp(ended, search_value, search_value_share)
    return (share[:, 0] - share[:, 2] - target).square()


@torch.no_grad()
def policy_accuracy(
    policy_logits: Tensor, legal: Tensor, policy_target: Tensor, weight: Tensor
) -> Tensor:
    """Returns the weighted accuracy of the most likely legal action, a scalar ``[]``.

    Args:
        policy_logits: ``[B, A]`` float32.
        legal: ``[B, A]`` uint8 or bool, nonzero for legal actions.
        policy_target: ``[B, A]`` float32.
        weight: ``[B]`` float32; rows with weight 0 are ignored.
    """
    lowest = torch.finfo(policy_logits.dtype).min
    best = policy_logits.masked_fill(~legal.bool(), lowest).argmax(dim=1)
    return _mean(best == policy_target.argmax(dim=1), weight)


@torch.no_grad()
def value_accuracy(value_logits: Tensor, outcome: Tensor, weight: Tensor) -> Tensor:
    """Returns the weighted accuracy of the most likely game result, a scalar ``[]``.

    Args:
        value_logits: ``[B, 3]`` float32 WDL logits (win, draw, loss).
        outcome: ``[B, 3]`` float32 distribution of win, draw, loss.
        weight: ``[B]`` float32; rows with weight 0 are ignored.
    """
    return _mean(value_logits.argmax(dim=1) == outcome.argmax(dim=1), weight)


def _mean(is_right: Tensor, weight: Tensor) -> Tensor:
    """Returns the weighted mean of ``is_right``, or 0 if all weights are 0."""
    tiny = torch.finfo(weight.dtype).tiny
    return (is_right * weight).sum() / weight.sum().clamp_min(tiny)
