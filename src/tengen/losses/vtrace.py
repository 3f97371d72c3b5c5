"""V-trace targets, which correct for policy lag, and the baseline loss.

Source: Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with
Importance Weighted Actor-Learner Architectures", sections 4.1 and 4.2.

Differs from the paper: the policy gradient has its own clip, and the values of the
states reached are a separate argument, because after a truncation the next row is not
the next state.

Legend: T time, B batch, A actions. All tensors are float32 and time-major.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = [
    "VtraceTargets",
    "baseline_loss",
    "vtrace_targets",
]


class VtraceTargets(NamedTuple):
    """The targets of the policy loss and the baseline loss, without gradient."""

    vs_tm1: Tensor
    """``[T, B]`` targets of the baseline at the states acted in."""
    pg_advantages: Tensor
    """``[T, B]`` advantages for the policy gradient."""


def vtrace_targets(
    *,
    v_tm1: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    rho_tm1: Tensor,
    trace_lambda: float = 1.0,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_pg_rho: float = 1.0,
) -> VtraceTargets:
    """Returns the V-trace targets of traces, one trace per column.

    With rho = min(clip_rho, rho_tm1) and c = trace_lambda * min(clip_c, rho_tm1)::

        delta = rho * (r_t + discount_t * v_t - v_tm1)
        vs_tm1 = v_tm1 + delta + discount_t * c * (vs_t - v_t)
        pg_advantage = min(clip_pg_rho, rho_tm1) * (r_t + discount_t * vs_t - v_tm1)

    where vs_t is the next row's vs_tm1, or v_t at the end of the trace. If an episode
    terminates inside the trace, its discount is 0, so later rows have no effect. If an
    episode is truncated, the next row is a reset step with rho 0, because no action was
    taken, so the target bootstraps from v_t and the trace ends.

    Args:
        v_tm1: ``[T, B]`` values of the states acted in.
        v_t: ``[T, B]`` values of the states reached.
        r_t: ``[T, B]`` rewards of the actions.
        discount_t: ``[T, B]`` discounts, 0 where the state reached is terminal.
        rho_tm1: ``[T, B]`` probability ratios pi(a) / mu(a) of the actions, at least
            0; pi is the learner's policy and mu the actor's.
        trace_lambda: Mixing of the traces, in [0, 1] (remark 2 of the paper).
        clip_rho: The paper's rho bar; it determines which value function is learned.
        clip_c: The paper's c bar, at most ``clip_rho``; it determines the speed of
            learning.
        clip_pg_rho: Clip of the importance weights of the policy gradient.
    """
    with torch.no_grad():
        rho = rho_tm1.clamp(max=clip_rho)
        c = trace_lambda * rho_tm1.clamp(max=clip_c)
        delta = rho * (r_t + discount_t * v_t - v_tm1)
        error = torch.zeros_like(v_t[0])
        errors = []
        for t in reversed(range(r_t.shape[0])):
            error = delta[t] + discount_t[t] * c[t] * error
            errors.append(error)
        vs_minus_v = torch.stack(errors[::-1])
        # vs_t - v_t is the next row's vs_tm1 - v_tm1, because v_t and the next row's
        # v_tm1 are equal, except at a cut, where rho 0 makes the difference 0.
        vs_t = v_t + torch.cat([vs_minus_v[1:], torch.zeros_like(vs_minus_v[:1])])
        weight = rho_tm1.clamp(max=clip_pg_rho)
        pg_advantages = weight * (r_t + discount_t * vs_t - v_tm1)
        return VtraceTargets(v_tm1 + vs_minus_v, pg_advantages)


def baseline_loss(v_tm1: Tensor, vs_tm1: Tensor) -> Tensor:
    """Returns half the squared error relative to fixed targets, ``[T, B]``.

    Args:
        v_tm1: ``[T, B]`` values.
        vs_tm1: ``[T, B]`` V-trace targets.
    """
    return 0.5 * (vs_tm1.detach() - v_tm1).square()
