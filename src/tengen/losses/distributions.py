"""Log-probabilities and entropies of actions, from the flat outputs of a policy.

A policy answers one row of numbers, ``[..., L]`` float32. For choices the row holds
the logits of every part, one part after the other; for real numbers it holds their
means, then the logarithms of their standard deviations. Parts are independent, so
their log-probabilities and their entropies add up.

``tengen.actors.actions`` has the same distributions in numpy, for actors, which
draw actions: the two modules must match.

Differs from most papers on continuous control: actions may be scaled by their bounds,
and are not squashed. The actor clips the action that it gives to the environment, and
stores the action that it drew, whose density is the Gaussian's.

Legend: L outputs, K parts or numbers of an action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from tengen.envs import Scale

__all__ = ["Categorical", "DiagonalGaussian", "Distribution", "make_distribution"]

# Bounds of the logarithm of a standard deviation, as in soft actor-critic.
_MIN_LOG_STD, _MAX_LOG_STD = -20.0, 2.0

# No log-probability is below this, so that their sums are finite and a weight of 0
# removes a row: 0 * -inf would be NaN.
_LOWEST = -1e30


class Distribution(Protocol):
    """The distribution of actions that a policy's outputs parametrise."""

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Returns ``[...]``, log-probabilities or log-densities in nats, finite.

        Args:
            outputs: ``[..., L]`` float32.
            actions: ``[...]`` or ``[..., K]``, int64 choices or float32 numbers.
        """

    def entropy(self, outputs: Tensor) -> Tensor:
        """Returns ``[...]``, entropies in nats; those of densities may be negative.

        Args:
            outputs: ``[..., L]`` float32.
        """


class Categorical:
    """One choice or several independent ones; L is the sum of ``num_choices``."""

    def __init__(self, num_choices: Sequence[int], shape: tuple[int, ...]) -> None:
        """Makes the distribution.

        Args:
            num_choices: Choices of each part, at least 1.
            shape: Shape of one action: () for one part, or ``(K,)``.
        """
        self._num_choices = list(num_choices)
        self._is_scalar = shape == ()

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See ``Distribution``."""
        parts = actions[..., None] if self._is_scalar else actions
        chosen = [
            log_policy.gather(-1, parts[..., i : i + 1])
            for i, log_policy in enumerate(self._log_policies(outputs))
        ]
        return torch.cat(chosen, dim=-1).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See ``Distribution``."""
        entropies = [
            -(log_policy.exp() * log_policy).sum(-1)
            for log_policy in self._log_policies(outputs)
        ]
        return torch.stack(entropies).sum(0)

    def _log_policies(self, outputs: Tensor) -> list[Tensor]:
        return [
            logits.log_softmax(-1).clamp_min(_LOWEST)
            for logits in torch.split(outputs, self._num_choices, dim=-1)
        ]


class DiagonalGaussian:
    """Independent real numbers; L is 2K, or 2 where an action is one number.

    Densities are those of the numbers before they are scaled.
    """

    def __init__(self, shape: tuple[int, ...], scale: Scale | None = None) -> None:
        """Makes the distribution.

        Args:
            shape: Shape of one action: () for one number, or ``(K,)``.
            scale: The policy's scale, by which drawn numbers become actions; None where
                they are actions.
        """
        self._is_scalar = shape == ()
        # In float32 a middle far from 0 would be another one than the actor's.
        self._scale = (
            None
            if scale is None
            else tuple(torch.tensor(one, dtype=torch.float64) for one in scale)
        )

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See ``Distribution``."""
        numbers = actions[..., None] if self._is_scalar else actions
        if self._scale is not None:
            middle, half = (one.to(numbers.device) for one in self._scale)
            numbers = ((numbers - middle) / half).to(outputs.dtype)
        mean, log_std = _split(outputs)
        distance = (numbers - mean) * (-log_std).exp()
        log_density = -0.5 * distance.square() - log_std - 0.5 * math.log(2 * math.pi)
        return log_density.clamp_min(_LOWEST).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See ``Distribution``."""
        _, log_std = _split(outputs)
        return (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


def make_distribution(
    num_choices: tuple[int, ...], shape: tuple[int, ...], scale: Scale | None = None
) -> Distribution:
    """Returns the distribution of the actions of an environment.

    Args:
        num_choices: Choices of each part; empty where actions are real numbers.
        shape: Shape of one action: () or ``(K,)``.
        scale: See ``DiagonalGaussian``; for real numbers alone.
    """
    if num_choices:
        return Categorical(num_choices, shape)
    return DiagonalGaussian(shape, scale)


def _split(outputs: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_std = outputs.chunk(2, dim=-1)
    return mean, log_std.clamp(_MIN_LOG_STD, _MAX_LOG_STD)
