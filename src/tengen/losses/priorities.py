"""Priorities of sequences in a replay table.

Source: Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed
Reinforcement Learning", section 2.3.

Differs from the paper: rows that were not learned from do not count.

Legend: T time, B batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["sequence_priorities"]


def sequence_priorities(td_errors: Tensor, is_learned: Tensor, eta: float) -> Tensor:
    """Returns ``[B]`` float32, eta times the largest error plus 1 - eta times the mean.

    Errors are absolute values. A sequence in which no row counts has priority 0.

    Args:
        td_errors: ``[T, B]`` float32.
        is_learned: ``[T, B]`` bool, whether a row counts; false in burn-in and where a
            row resets.
        eta: Share of the largest error, in [0, 1]; 0.9 in the paper.
    """
    sizes = torch.where(is_learned, td_errors.detach().abs(), 0.0)
    means = sizes.sum(0) / is_learned.sum(0).clamp_min(1)
    return eta * sizes.amax(0) + (1.0 - eta) * means
