"""The losses of soft actor-critic (SAC), for continuous and discrete actions.

Source: Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"
(arXiv:1812.05905), equations 5 to 7 and 18; for discrete actions Christodoulou 2019,
"Soft Actor-Critic for Discrete Action Settings" (arXiv:1910.07207), section 3.

Legend: C critics, B batch, A actions, K numbers of an action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from tengen.losses.products import product_or_zero

# Bounds of the logarithm of a standard deviation, as in tengen.losses.distributions.
_MIN_LOG_STD, _MAX_LOG_STD = -20.0, 2.0


def squashed_sample(outputs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Returns sampled actions in [-1, 1], and their log-densities.

    An action is ``tanh(mean + std * noise)``, so gradients propagate to the policy.

    Args:
        outputs: ``[..., 2K]`` means, then logarithms of standard deviations.
        noise: ``[..., K]`` samples of a standard normal distribution.

    Returns:
        Actions ``[..., K]``, and their log-densities after tanh, ``[...]``, in nats.
    """
    mean, log_std = outputs.chunk(2, dim=-1)
    log_std = log_std.clamp(_MIN_LOG_STD, _MAX_LOG_STD)
    before = mean + log_std.exp() * noise
    log_density = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
    # log(1 - tanh(u)^2) for u = before, in a form that is precise if tanh(u) is near 1.
    slope = 2.0 * (math.log(2.0) - before - functional.softplus(-2.0 * before))
    return before.tanh(), (log_density - slope).sum(-1)


def soft_values(q: Tensor, log_policy: Tensor, temperature: Tensor | float) -> Tensor:
    """Returns soft state values: the critics' minimum plus an entropy term, ``[B]``.

    Args:
        q: Q values, ``[C, B]`` of a sampled action or ``[C, B, A]`` of all actions.
        log_policy: ``[B]`` or ``[B, A]``, log-probabilities of these actions, in nats.
        temperature: ``[]``, the weight of the entropy, in reward per nat; with 0 the
            results are expected Q values.
    """
    values = q.min(0).values - temperature * log_policy
    if values.dim() == 1:
        return values
    return (log_policy.exp() * values).sum(-1)


def mean_of_present(values: Tensor, is_present: Tensor) -> Tensor:
    """Returns the mean over the agents that are present, ``[B]``; 0 if none is.

    Args:
        values: ``[B, n]``, a value per agent.
        is_present: ``[B, n]`` bool, the agents in the episode.
    """
    count = is_present.float().sum(-1).clamp(min=1.0)
    return torch.where(is_present, values, 0.0).sum(-1) / count


def team_soft_values(
    values: Tensor, entropy: Tensor, is_present: Tensor, temperature: Tensor
) -> Tensor:
    """Returns the soft value of a team whose agents act independently, ``[B]``.

    Args:
        values: ``[B, n]``, an estimate of the team's expected Q value per agent.
        entropy: ``[B, n]``, entropies of the agents' policies in nats, which add up.
        is_present: ``[B, n]`` bool, the agents in the episode.
        temperature: ``[]``, the weight of the entropy, in reward per nat.
    """
    total = torch.where(is_present, entropy, 0.0).sum(-1)
    return mean_of_present(values, is_present) + temperature * total


def soft_targets(
    *, reward: Tensor, terminated: Tensor, value_t: Tensor, discount: float
) -> Tensor:
    """Returns the targets of the critics, ``[B]``, without gradient.

    Args:
        reward: ``[B]``.
        terminated: ``[B]`` bool or uint8, nonzero if the episode terminated.
        value_t: ``[B]``, ``soft_values`` of the next states, from the target critics.
        discount: Discount per step, in [0, 1].
    """
    discounts = discount * (terminated == 0).to(value_t.dtype)
    return (reward + product_or_zero(discounts, value_t)).detach()


def critic_loss(q: Tensor, targets: Tensor) -> Tensor:
    """Returns half the sum of all critics' squared errors, ``[B]``.

    Args:
        q: ``[C, B]``, Q values of the actions taken.
        targets: ``[B]``, the result of ``soft_targets``.
    """
    return 0.5 * (q - targets).square().sum(0)


def temperature_loss(
    log_temperature: Tensor, entropy: Tensor, target_entropy: float | Tensor
) -> Tensor:
    """Returns a loss that raises the temperature if the entropy is too low, ``[B]``.

    Args:
        log_temperature: ``[]``, natural logarithm of the temperature.
        entropy: ``[B]``, the policy's entropy or an estimate from one sample, in nats;
            it gets no gradient.
        target_entropy: The entropy at which the temperature is constant, in nats;
            ``[B]`` if it depends on the row.
    """
    return torch.exp(log_temperature) * (entropy.detach() - target_entropy)
