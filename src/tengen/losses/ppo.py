"""The losses of proximal policy optimization, and measures of how far a step went.

Source: Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation (7).
The clipped value loss is that of the authors' code (openai/baselines, ppo2), the
estimate of the KL divergence from Schulman 2020, "Approximating KL Divergence", k3.

Differs from the paper: advantages may be normalised, and the probability ratio is at
most e^20 and carries no gradient there.

Legend: T time, B batch. Everything is float32; every function works row by row, except
``normalise``. ``behaviour`` marks the actor's values at the time it acted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tengen.losses.vtrace import baseline_loss

__all__ = [
    "approximate_kl",
    "clipped_surrogate_loss",
    "clipped_value_loss",
    "explained_variance",
    "is_clipped",
    "normalise",
]

# An infinite ratio would make the gradient NaN even where the clip removes the ratio.
_MAX_LOG_RATIO = 20.0


def clipped_surrogate_loss(
    log_prob_tm1: Tensor,
    behaviour_log_prob_tm1: Tensor,
    advantages: Tensor,
    clip_ratio: float,
) -> Tensor:
    """Returns ``[T, B]``, minus the lesser of ratio and clipped ratio times advantage.

    Args:
        log_prob_tm1: ``[T, B]`` of the actions taken, under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]`` of the same under the actor's, no gradient.
        advantages: ``[T, B]``, no gradient.
        clip_ratio: How far from 1 the ratio may go before its gradient is cut off,
            above 0.
    """
    advantages = advantages.detach()
    ratio = _log_ratio(log_prob_tm1, behaviour_log_prob_tm1).exp()
    clipped = ratio.clamp(1.0 - clip_ratio, 1.0 + clip_ratio)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def clipped_value_loss(
    v_tm1: Tensor,
    behaviour_v_tm1: Tensor,
    returns: Tensor,
    clip_value: float | None,
) -> Tensor:
    """Returns ``[T, B]``, half the squared error, at least that of the clipped value.

    Args:
        v_tm1: ``[T, B]`` values.
        behaviour_v_tm1: ``[T, B]`` values before the steps on this batch, the learner's
            or the actor's.
        returns: ``[T, B]`` targets.
        clip_value: How far a value may go from ``behaviour_v_tm1``, above 0; None for
            no clip, which gives ``baseline_loss``.
    """
    loss = baseline_loss(v_tm1, returns)
    if clip_value is None:
        return loss
    behaviour = behaviour_v_tm1.detach()
    clipped = behaviour + (v_tm1 - behaviour).clamp(-clip_value, clip_value)
    return torch.maximum(loss, baseline_loss(clipped, returns))


def normalise(advantages: Tensor, is_live: Tensor) -> Tensor:
    """Returns ``[T, B]`` with mean 0 and standard deviation 1 over the live rows.

    Args:
        advantages: ``[T, B]``.
        is_live: ``[T, B]`` bool, whether a row is a transition; others become 0.
    """
    num_rows = is_live.sum().clamp_min(1)
    mean = torch.where(is_live, advantages, 0.0).sum() / num_rows
    centred = torch.where(is_live, advantages - mean, 0.0)
    variance = centred.square().sum() / num_rows
    return centred / (variance.sqrt() + 1e-8)


def approximate_kl(log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor) -> Tensor:
    """Returns ``[T, B]`` at least 0, whose mean estimates KL(actor, learner) in nats.

    Args:
        log_prob_tm1: ``[T, B]`` of the actions taken, under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]`` of the same under the actor's.
    """
    log_ratio = _log_ratio(log_prob_tm1, behaviour_log_prob_tm1).detach()
    return log_ratio.expm1() - log_ratio


def is_clipped(
    log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor, clip_ratio: float
) -> Tensor:
    """Returns ``[T, B]`` bool, whether the ratio is beyond the clip on either side.

    Args:
        log_prob_tm1: ``[T, B]`` of the actions taken, under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]`` of the same under the actor's.
        clip_ratio: As in ``clipped_surrogate_loss``.
    """
    log_ratio = _log_ratio(log_prob_tm1, behaviour_log_prob_tm1).detach()
    return log_ratio.expm1().abs() > clip_ratio


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """Returns a scalar, 1 minus var(returns - values) / var(returns).

    1 is a perfect prediction; 0 is one no better than a constant.

    Args:
        values: ``[N]``, the predictions.
        returns: ``[N]``. Where they do not vary, the result is 0.
    """
    errors = returns - values
    left = (errors - errors.mean()).square().mean()
    total = (returns - returns.mean()).square().mean()
    # Without any rows the total is NaN, which is not above 0 either.
    return torch.where(total > 0, 1.0 - left / total, torch.zeros_like(total))


def _log_ratio(log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor) -> Tensor:
    log_ratio = log_prob_tm1 - behaviour_log_prob_tm1.detach()
    return log_ratio.clamp(max=_MAX_LOG_RATIO)
