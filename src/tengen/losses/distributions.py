"""Log-probabilities and entropies of actions, computed from a policy's flat outputs.

A policy outputs rows ``[..., L]`` float32. For discrete actions, a row contains the
logits of all parts of the action, one part after another. For continuous actions, it
contains the means, then the logarithms of the standard deviations. The parts of an
action are independent, so log-probabilities and entropies are sums over the parts.

``tengen.actors.actions`` implements the same distributions in numpy, for actors, which
sample actions. The two modules must match.

Differs from most papers on continuous control: actions may be scaled by their bounds,
and are not squashed. The actor clips the sampled action for the environment, but stores
the unclipped action, because its density is the Gaussian's.

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

# Bounds of the logarithm of a standard deviation, as in soft actor-critic.
_MIN_LOG_STD, _MAX_LOG_STD = -20.0, 2.0

# The minimum log-probability. It is finite, because -inf times a weight of 0 is NaN.
_LOWEST = -1e30


class Distribution(Protocol):
    """A distribution of actions with a policy's outputs as parameters."""

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Returns log-probabilities or log-densities of actions, finite, ``[...]``.

        Args:
            outputs: ``[..., L]`` float32, outputs of the policy.
            actions: ``[...]`` or ``[..., K]``, int64 if discrete, else float32.
        """

    def entropy(self, outputs: Tensor) -> Tensor:
        """Returns entropies in nats, ``[...]``; they may be negative for densities.

        Args:
            outputs: ``[..., L]`` float32, outputs of the policy.
        """


class Categorical:
    """Actions with independent discrete parts; L is the sum of ``num_choices``."""

    def __init__(self, num_choices: Sequence[int], shape: tuple[int, ...]) -> None:
        """Creates a distribution of discrete actions.

        Args:
            num_choices: Number of choices for each part of an action, at least 1.
            shape: Shape of one action: () for one part, or ``(K,)``.
        """
        self._num_choices = list(num_choices)
        self._is_scalar = shape == ()

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Returns log-probabilities; see ``Distribution.log_prob``."""
        parts = actions[..., None] if self._is_scalar else actions
        chosen = [
            log_policy.gather(-1, parts[..., i : i + 1])
            for i, log_policy in enumerate(self._log_policies(outputs))
        ]
        return torch.cat(chosen, dim=-1).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """Returns entropies; see ``Distribution.entropy``."""
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
    """Continuous actions of independent Gaussian numbers; L is 2K, or 2 if K is 1.

    Densities are those of the numbers before scaling.
    """

    def __init__(self, shape: tuple[int, ...], scale: Scale | None = None) -> None:
        """Creates a distribution of continuous actions.

        Args:
            shape: Shape of one action: () for one number, or ``(K,)``.
            scale: The scale that converts sampled numbers to actions; None for no
                conversion.
        """
        self._is_scalar = shape == ()
        # Use float64 as the actor does, because float32 would round differently.
        self._scale = (
            None
            if scale is None
            else tuple(torch.tensor(one, dtype=torch.float64) for one in scale)
        )

    def log_prob(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """Returns log-densities; see ``Distribution.log_prob``."""
        numbers = actions[..., None] if self._is_scalar else actions
        if self._scale is not None:
            middle, half = (one.to(numbers.device) for one in self._scale)
            numbers = ((numbers - middle) / half).to(outputs.dtype)
        mean, log_std = _split(outputs)
        distance = (numbers - mean) * (-log_std).exp()
        log_density = -0.5 * distance.square() - log_std - 0.5 * math.log(2 * math.pi)
        return log_density.clamp_min(_LOWEST).sum(-1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """Returns entropies of the densities; see ``Distribution.entropy``."""
        _, log_std = _split(outputs)
        return (log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


def make_distribution(
    num_choices: tuple[int, ...], shape: tuple[int, ...], scale: Scale | None = None
) -> Distribution:
    """Returns the distribution class for the actions of an environment.

    Args:
        num_choices: Number of choices for each part; empty for continuous actions.
        shape: Shape of one action: () or ``(K,)``.
        scale: See ``DiagonalGaussian``; only for continuous actions.
    """
    if num_choices:
        return Categorical(num_choices, shape)
    return DiagonalGaussian(shape, scale)


def _split(outputs: Tensor) -> tuple[Tensor, Tensor]:
    mean, log_std = outputs.chunk(2, dim=-1)
    return mean, log_std.clamp(_MIN_LOG_STD, _MAX_LOG_STD)
