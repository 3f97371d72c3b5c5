"""Policy and value losses of search-guided self-play.

Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters
chess, shogi, and Go through self-play", equation (1).

Differs from the paper: the value is a distribution over win, draw and loss trained by
cross-entropy, its target may mix in the search's value, and rows carry weights. The
paper's third term, L2, is the optimizer's weight decay.

Legend: B batch, A actions. Values are the side to move's.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["policy_cross_entropy", "value_cross_entropy"]


def policy_cross_entropy(
    policy_logits: Tensor, legal: Tensor, policy_target: Tensor
) -> Tensor:
    """Returns ``[B]`` float32, the cross-entropy over legal actions of each row.

    Args:
        policy_logits: ``[B, A]`` float32.
        legal: ``[B, A]`` uint8 or bool, nonzero where an action is legal.
        policy_target: ``[B, A]`` float32, sums to 1 over legal actions; a row of
            zeros gives a loss of zero.
    """
    is_legal = legal.bool()
    # The lowest finite number and not -inf: 0 * -inf would make the loss NaN.
    lowest = torch.finfo(policy_logits.dtype).min
    log_policy = policy_logits.masked_fill(~is_legal, lowest).log_softmax(dim=1)
    return -(policy_target * log_policy.masked_fill(~is_legal, 0.0)).sum(dim=1)


def value_cross_entropy(
    value_logits: Tensor,
    outcome: Tensor,
    search_value: Tensor,
    search_value_share: float,
) -> Tensor:
    """Returns ``[B]`` float32, the cross-entropy to outcome and search value mixed.

    The search gives a mean v and no chance of a draw. Its distribution of win, draw
    and loss is ((1 + v) / 2, 0, (1 - v) / 2), or after a drawn game the one that draws
    as often as v allows, 1 - abs(v). Both have the mean v.

    Args:
        value_logits: ``[B, 3]`` float32 logits of win, draw, loss.
        outcome: ``[B, 3]`` float32 distribution of win, draw, loss.
        search_value: ``[B]`` float32 in [-1, 1].
        search_value_share: Share of the search's value in the target, in [0, 1].
    """
    draw = outcome[:, 1] * (1.0 - search_value.abs())
    win = (1.0 + search_value - draw) / 2.0
    searched = torch.stack([win, draw, 1.0 - win - draw], dim=1)
    target = torch.lerp(outcome, searched, search_value_share)
    return functional.cross_entropy(value_logits, target, reduction="none")
