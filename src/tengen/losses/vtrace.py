"""V-trace targets, which correct for policy lag, and the loss of the baseline.

Source: Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with
Importance Weighted Actor-Learner Architectures", sections 4.1 and 4.2.

Differs from the paper: the policy gradient has its own clip of the importance weights.
The values of the next states are a separate argument, because after a truncation the
next row does not hold the next state.

Legend: T time, B batch, A actions. All tensors are float32 and time-major.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tengen.losses.products import product_or_zero


class VtraceTargets(NamedTuple):
    """V-trace targets for the policy loss and the baseline loss, without gradient."""

    vs_tm1: Tensor
    """Targets ``[T, B]`` of the baseline for the states of ``v_tm1``."""
    pg_advantages: Tensor
    """Advantages ``[T, B]`` for the policy gradient."""


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
    terminates inside the trace, discount_t is 0, so later rows have no effect. If an
    episode is truncated, the next row is a reset step, which has rho 0 because no
    action was taken. So the target bootstraps from v_t, and later rows have no effect.

    Args:
        v_tm1: ``[T, B]`` values of the states in which the actions were taken.
        v_t: ``[T, B]`` values of the next states.
        r_t: ``[T, B]`` rewards of the actions.
        discount_t: ``[T, B]`` discounts, 0 if the next state is terminal.
        rho_tm1: ``[T, B]`` probability ratios pi(a) / mu(a) of the actions, at least
            0; pi is the learner's policy and mu the actor's.
        trace_lambda: Factor of the trace coefficients c, in [0, 1] (remark 2).
        clip_rho: The paper's rho bar; it determines which value function is learned.
        clip_c: The paper's c bar, at most ``clip_rho``; it determines the speed of
            convergence.
        clip_pg_rho: Maximum importance weight in the policy gradient.
    """
    with torch.no_grad():
        rho = rho_tm1.clamp(max=clip_rho)
        c = trace_lambda * rho_tm1.clamp(max=clip_c)
        delta = product_or_zero(rho, r_t + product_or_zero(discount_t, v_t) - v_tm1)
        decay = discount_t * c
        is_carried = decay != 0  # as in product_or_zero, but once for all rows
        error = torch.zeros_like(v_t[0])
        errors = []
        columns = (one.flip(0) for one in (delta, decay, is_carried))
        for first, factor, carries in zip(*columns, strict=True):
            error = torch.where(carries, first + factor * error, first)
            errors.append(error)
        vs_minus_v = torch.stack(errors[::-1])
        # vs_t - v_t is the next row's vs_tm1 - v_tm1. The states of v_t and the next
        # row's v_tm1 differ only at reset steps, whose rho of 0 makes the difference 0.
        vs_t = v_t + torch.cat([vs_minus_v[1:], torch.zeros_like(vs_minus_v[:1])])
        weight = rho_tm1.clamp(max=clip_pg_rho)
        following = r_t + product_or_zero(discount_t, vs_t)
        pg_advantages = product_or_zero(weight, following - v_tm1)
        return VtraceTargets(v_tm1 + vs_minus_v, pg_advantages)


def baseline_loss(v_tm1: Tensor, vs_tm1: Tensor) -> Tensor:
    """Returns half the squared error of the values, ``[T, B]``.

    Args:
        v_tm1: ``[T, B]`` predicted values.
        vs_tm1: ``[T, B]`` targets, such as V-trace targets; they get no gradient.
    """
    return 0.5 * (vs_tm1.detach() - v_tm1).square()
