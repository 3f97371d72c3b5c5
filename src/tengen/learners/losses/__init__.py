"""Losses as pure functions of tensors.

Time suffixes as in the field: ``_tm1`` is at the state that an action was taken in,
``_t`` at the next one. Legend: T time, B batch, A actions.
"""

from __future__ import annotations

from tengen.learners.losses.alphazero import policy_cross_entropy, value_cross_entropy
from tengen.learners.losses.auxiliary import (
    horizon_cross_entropy,
    lead_huber,
    mean_score_huber,
    ownership_cross_entropy,
    reply_cross_entropy,
    score_distribution,
    score_losses,
)
from tengen.learners.losses.vtrace import (
    VtraceTargets,
    baseline_loss,
    entropy_loss,
    policy_gradient_loss,
    vtrace_targets,
)

__all__ = [
    "VtraceTargets",
    "baseline_loss",
    "entropy_loss",
    "horizon_cross_entropy",
    "lead_huber",
    "mean_score_huber",
    "ownership_cross_entropy",
    "policy_cross_entropy",
    "policy_gradient_loss",
    "reply_cross_entropy",
    "score_distribution",
    "score_losses",
    "value_cross_entropy",
    "vtrace_targets",
]
