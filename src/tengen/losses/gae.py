"""Generalized advantage estimation (GAE) for traces with several episodes.

Source: Schulman et al. 2016, "High-Dimensional Continuous Control Using Generalized
Advantage Estimation", equation (16).

Differs from the paper: a trace may contain several episodes, and may end before an
episode ends. For the stream of rewards that continues across episodes Burda et al.
2018, "Exploration by Random Network Distillation" (arXiv:1810.12894), section 2.3.

Legend: T time, B batch. All tensors are float32 and time-major.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tengen.losses.products import product_or_zero


class GaeTargets(NamedTuple):
    """GAE targets for the policy loss and the baseline loss, without gradient."""

    advantages: Tensor
    """Advantages ``[T, B]`` for the policy loss, 0 in reset steps."""
    returns: Tensor
    """Targets ``[T, B]`` for the baseline: advantages plus values, or the V-trace
    targets if ratios were given."""


def gae_targets(
    *,
    v: Tensor,
    reward: Tensor,
    terminated: Tensor,
    is_reset: Tensor,
    discount: float,
    trace_lambda: float,
    ratio: Tensor | None = None,
    crosses_episodes: bool = False,
) -> GaeTargets:
    """Returns the advantages and returns of traces, one trace per column.

    Within an episode::

        delta[t] = reward[t] + discount * v[t + 1] - v[t]
        advantage[t] = delta[t] + discount * trace_lambda * advantage[t + 1]

    In a terminated row, v[t + 1] and advantage[t + 1] count as 0. After a truncated row
    comes a reset step, with the value of the final observation and an advantage of 0.
    So the truncated row bootstraps from the final observation, and no advantage
    propagates to an earlier episode. The last row bootstraps from v[T].

    With ``ratio``, a row's advantage is multiplied by min(1, ratio) in the row's return
    and before it propagates to the previous row::

        advantage[t] = delta[t] + discount * trace_lambda * handed_on[t + 1]
        handed_on[t] = min(1, ratio[t]) * advantage[t]

    With ``crosses_episodes``, an episode's last action is followed by the next
    episode's first observation, as if there were one endless episode without reset
    steps. A termination then ends nothing.

    Args:
        v: ``[T + 1, B]`` values of the observations.
        reward: ``[T, B]`` rewards of the actions.
        terminated: ``[T, B]`` bool or uint8, nonzero if the episode terminated.
        is_reset: ``[T, B]`` or ``[T + 1, B]`` bool or uint8, nonzero in reset steps;
            row T is ignored.
        discount: Discount per step, in [0, 1].
        trace_lambda: In [0, 1]; 0 uses one reward, 1 all rewards to the trace's end.
        ratio: ``[T, B]`` probability ratios pi(a) / mu(a) of the actions, at least 0;
            pi is the learner's policy and mu the actor's. None: all ratios are 1.
        crosses_episodes: Whether values and advantages propagate from an episode to
            the previous one.
    """
    with torch.no_grad():
        num_steps = len(reward)
        is_live = is_reset[:num_steps] == 0
        goes_on = discount * (terminated == 0).to(v.dtype)
        if crosses_episodes:
            goes_on = torch.full_like(goes_on, discount)
            v = _without_resets(v, is_live)
        following = reward + product_or_zero(goes_on, v[1:])
        delta = torch.where(is_live, following - v[:-1], 0.0)
        decay = trace_lambda * goes_on * is_live
        is_carried = decay != 0  # as in product_or_zero, but once for all rows
        weight = torch.ones_like(delta) if ratio is None else ratio.clamp(max=1.0)
        handed_on = torch.zeros_like(v[0])
        advantages = []
        columns = (one.flip(0) for one in (delta, decay, is_carried, weight, is_live))
        for first, factor, carries, share, lives in zip(*columns, strict=True):
            row = torch.where(carries, first + factor * handed_on, first)
            advantages.append(row)
            own = row if ratio is None else share * row
            handed_on = own.where(lives, handed_on) if crosses_episodes else own
        stacked = torch.stack(advantages[::-1])
        return GaeTargets(stacked, weight * stacked + v[:-1])


def _without_resets(v: Tensor, is_live: Tensor) -> Tensor:
    """Returns ``v`` with the next row's value in each reset step."""
    rows = [v[-1]]
    for t in reversed(range(len(is_live))):
        rows.append(torch.where(is_live[t], v[t], rows[-1]))
    return torch.stack(rows[::-1])
