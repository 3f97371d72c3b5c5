"""Losses of all algorithms, as pure functions of tensors.

Time suffixes: ``_tm1`` marks values at the state in which an action was taken, ``_t``
marks values at the next state. Legend: T time, B batch, A actions.
"""

from __future__ import annotations

from tengen.losses.alphazero import (
    policy_accuracy,
    policy_cross_entropy,
    value_accuracy,
    value_cross_entropy,
    value_squared_error,
)
from tengen.losses.auxiliary import (
    horizon_cross_entropy,
    lead_huber,
    mean_score_huber,
    ownership_cross_entropy,
    reply_cross_entropy,
    score_distribution,
    score_losses,
)
from tengen.losses.distributions import (
    Categorical,
    DiagonalGaussian,
    Distribution,
    make_distribution,
)
from tengen.losses.gae import GaeTargets, gae_targets
from tengen.losses.ppo import (
    approximate_kl,
    clipped_surrogate_loss,
    clipped_value_loss,
    explained_variance,
    is_clipped,
    normalise,
)
from tengen.losses.products import product_or_zero
from tengen.losses.q_learning import (
    double_q_values,
    dueling,
    mixed_values,
    n_step_targets,
    quantile_huber_loss,
    sequence_priorities,
    signed_hyperbolic,
    signed_parabolic,
    td_errors,
    td_loss,
)
from tengen.losses.soft_actor_critic import (
    critic_loss,
    mean_of_present,
    soft_targets,
    soft_values,
    squashed_sample,
    team_soft_values,
    temperature_loss,
)
from tengen.losses.vtrace import VtraceTargets, baseline_loss, vtrace_targets

__all__ = [
    "Categorical",
    "DiagonalGaussian",
    "Distribution",
    "GaeTargets",
    "VtraceTargets",
    "approximate_kl",
    "baseline_loss",
    "clipped_surrogate_loss",
    "clipped_value_loss",
    "critic_loss",
    "double_q_values",
    "dueling",
    "explained_variance",
    "gae_targets",
    "horizon_cross_entropy",
    "is_clipped",
    "lead_huber",
    "make_distribution",
    "mean_of_present",
    "mean_score_huber",
    "mixed_values",
    "n_step_targets",
    "normalise",
    "ownership_cross_entropy",
    "policy_accuracy",
    "policy_cross_entropy",
    "product_or_zero",
    "quantile_huber_loss",
    "reply_cross_entropy",
    "score_distribution",
    "score_losses",
    "sequence_priorities",
    "signed_hyperbolic",
    "signed_parabolic",
    "soft_targets",
    "soft_values",
    "squashed_sample",
    "td_errors",
    "td_loss",
    "team_soft_values",
    "temperature_loss",
    "value_accuracy",
    "value_cross_entropy",
    "value_squared_error",
    "vtrace_targets",
]
