"""The losses of proximal policy optimization (PPO), and statistics of policy updates.

Source: Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation (7).
The clipped value loss is that of the authors' code (openai/baselines, ppo2). The
estimate of the KL divergence is k3 of Schulman 2020, "Approximating KL Divergence".

Differs from the paper: advantages may be normalised, and the probability ratio is
clipped to e^20, where it has no gradient.

Legend: T time, B batch. All tensors are float32. Rows are independent, except in
``normalise`` and ``explained_variance``. ``behaviour`` marks the actor's outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tengen.losses.vtrace import baseline_loss

# Maximum log-ratio. An infinite ratio would make even clipped gradients NaN.
_MAX_LOG_RATIO = 20.0


def clipped_surrogate_loss(
    log_prob_tm1: Tensor,
    behaviour_log_prob_tm1: Tensor,
    advantages: Tensor,
    clip_ratio: float,
) -> Tensor:
    """Returns -min(ratio * advantage, clipped ratio * advantage), ``[T, B]``.

    Args:
        log_prob_tm1: ``[T, B]`` log-probabilities under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]`` log-probabilities of the same actions under
            the actor's policy, without gradient.
        advantages: ``[T, B]``, without gradient.
        clip_ratio: The maximum difference of the ratio from 1, above 0; a clipped ratio
            has no gradient.
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
    """Returns the maximum of the losses of value and clipped value, ``[T, B]``.

    Args:
        v_tm1: ``[T, B]`` values that the network predicts.
        behaviour_v_tm1: ``[T, B]`` values of the learner or the actor, from before the
            learner's steps on this batch.
        returns: ``[T, B]`` targets of the values.
        clip_value: The maximum difference from ``behaviour_v_tm1``, above 0; None for
            no clip, which gives ``baseline_loss``.
    """
    loss = baseline_loss(v_tm1, returns)
    if clip_value is None:
        return loss
    behaviour = behaviour_v_tm1.detach()
    clipped = behaviour + (v_tm1 - behaviour).clamp(-clip_value, clip_value)
    return torch.maximum(loss, baseline_loss(clipped, returns))


def normalise(advantages: Tensor, is_live: Tensor) -> Tensor:
    """Returns advantages with mean 0 and standard deviation 1, ``[T, B]``.

    Args:
        advantages: ``[T, B]``.
        is_live: ``[T, B]`` bool, true for the transitions to normalise; other rows
            become 0.
    """
    num_rows = is_live.sum().clamp_min(1)
    mean = torch.where(is_live, advantages, 0.0).sum() / num_rows
    centred = torch.where(is_live, advantages - mean, 0.0)
    variance = centred.square().sum() / num_rows
    return centred / (variance.sqrt() + 1e-8)


def approximate_kl(log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor) -> Tensor:
    """Returns nonnegative estimates of KL(actor, learner) in nats, ``[T, B]``.

    Args:
        log_prob_tm1: ``[T, B]`` log-probabilities under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]``, under the actor's policy.
    """
    log_ratio = _log_ratio(log_prob_tm1, behaviour_log_prob_tm1).detach()
    return log_ratio.expm1() - log_ratio


def is_clipped(
    log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor, clip_ratio: float
) -> Tensor:
    """Returns whether the ratio is outside the clipping range, ``[T, B]`` bool.

    Args:
        log_prob_tm1: ``[T, B]`` log-probabilities under the learner's policy.
        behaviour_log_prob_tm1: ``[T, B]``, under the actor's policy.
        clip_ratio: As in ``clipped_surrogate_loss``.
    """
    log_ratio = _log_ratio(log_prob_tm1, behaviour_log_prob_tm1).detach()
    return log_ratio.expm1().abs() > clip_ratio


def explained_variance(values: Tensor, returns: Tensor) -> Tensor:
    """Returns 1 - var(returns - values) / var(returns), a scalar.

    A perfect prediction gives 1, and a constant prediction gives 0.

    Args:
        values: ``[N]``, the predictions.
        returns: ``[N]``, the targets. If all are equal, the result is 0.
    """
    errors = returns - values
    left = (errors - errors.mean()).square().mean()
    total = (returns - returns.mean()).square().mean()
    # If there are no rows, ``total`` is NaN, the comparison false and the result 0.
    return torch.where(total > 0, 1.0 - left / total, torch.zeros_like(total))


def _log_ratio(log_prob_tm1: Tensor, behaviour_log_prob_tm1: Tensor) -> Tensor:
    log_ratio = log_prob_tm1 - behaviour_log_prob_tm1.detach()
    return log_ratio.clamp(max=_MAX_LOG_RATIO)
