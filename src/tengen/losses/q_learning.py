"""Q-learning: n-step targets, double Q values, duelling heads, TD errors and losses.

Sources: van Hasselt et al. 2016, "Deep Reinforcement Learning with Double Q-learning";
Wang et al. 2016, "Dueling Network Architectures for Deep Reinforcement Learning",
equation (9); Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed
Reinforcement Learning", section 2.3 (n-step targets of rescaled values); Dabney et al.
2018, "Implicit Quantile Networks for Distributional Reinforcement Learning"
(arXiv:1806.06923), equations 3 and 4 (the quantile loss).

Differs from the papers: a sequence may contain several episodes, and at a truncation
the target bootstraps from the final observation.

Legend: T time, B batch, A actions, N quantiles, M quantiles of targets. All tensors are
float32 and time-major.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from tengen.losses.products import product_or_zero
from tengen.tensors import ILLEGAL


def n_step_targets(
    *,
    reward: Tensor,
    terminated: Tensor,
    is_reset: Tensor,
    bootstrap: Tensor,
    num_steps: int,
    discount: float | Tensor,
    rescaling_epsilon: float | None = None,
) -> Tensor:
    """Returns n-step targets for the actions' Q values, ``[T, B]``, without gradient.

    Within an episode, with n = num_steps::

        target[t] = reward[t] + ... + discount^(n - 1) * reward[t + n - 1]
                    + discount^n * bootstrap[t + n]

    The sum has fewer rewards in three cases. At a terminated row it ends without a
    bootstrap. At a truncated row, which a reset step follows, it ends with the
    bootstrap of the final observation. At the last row it ends with bootstrap[T]. The
    target of a reset step is 0 and must not be used in a loss.

    Args:
        reward: ``[T, B]`` rewards of the actions.
        terminated: ``[T, B]`` bool or uint8, nonzero if the episode terminated.
        is_reset: ``[T, B]`` or ``[T + 1, B]`` bool or uint8, nonzero in reset steps;
            row T is ignored.
        bootstrap: ``[T + 1, B]`` values of the observations; row 0 is ignored.
        num_steps: Number n of rewards in a target, at least 1.
        discount: Discount per step, in [0, 1]; a tensor ``[T, B]`` has that of each
            action.
        rescaling_epsilon: Epsilon of ``signed_hyperbolic`` if bootstraps and targets
            are rescaled; None for no rescaling. Rewards are never rescaled.
    """
    with torch.no_grad():
        value_t = bootstrap[1:]
        if rescaling_epsilon is not None:
            value_t = signed_parabolic(value_t, rescaling_epsilon)
        is_live = is_reset[: len(reward)] == 0
        discounts = discount * (terminated == 0).to(value_t.dtype)
        # Before a reset step, the target bootstraps from the final observation.
        is_cut = torch.cat([~is_live[1:], torch.ones_like(is_live[:1])])
        follows = value_t
        for _ in range(num_steps):
            returns = reward + product_or_zero(discounts, follows)
            follows = torch.where(is_cut, value_t, returns.roll(-1, dims=0))
        if rescaling_epsilon is not None:
            returns = signed_hyperbolic(returns, rescaling_epsilon)
        return torch.where(is_live, returns, 0.0)


def double_q_values(q_online: Tensor, q_target: Tensor) -> Tensor:
    """Returns the target network's Q values of the online network's best actions.

    Args:
        q_online: ``[..., A]``, the online network's Q values, which select the action.
        q_target: ``[..., A]``, the target network's Q values; they get no gradient.
    """
    best = q_online.argmax(-1, keepdim=True)
    return q_target.detach().gather(-1, best).squeeze(-1)


def dueling(value: Tensor, advantage: Tensor, mask: Tensor | None = None) -> Tensor:
    """Returns Q values ``[..., A]`` with the mean ``value`` over legal actions.

    Args:
        value: ``[...]``, the output of the value head.
        advantage: ``[..., A]``, the output of the advantage head; only differences
            between actions matter.
        mask: ``[..., A]`` bool or uint8, nonzero for legal actions; None if all are.
    """
    if mask is None:
        return value[..., None] + advantage - advantage.mean(-1, keepdim=True)
    is_legal = mask != 0
    total = advantage.masked_fill(~is_legal, 0.0).sum(-1, keepdim=True)
    mean = total / is_legal.sum(-1, keepdim=True)
    return value[..., None] + advantage - mean


def mixed_values(
    extrinsic: Tensor, intrinsic: Tensor, beta: Tensor, rescaling_epsilon: float
) -> Tensor:
    """Returns the rescaled sum of two rescaled values, ``[..., A]``, without gradient.

    The result is h(g(extrinsic) + beta * g(intrinsic)), where h is
    ``signed_hyperbolic`` and g its inverse. Entries below half of ``ILLEGAL`` remain
    those of ``extrinsic``.

    Source: Badia et al. 2020, "Agent57" (arXiv:2003.13350), section 3.1.

    Args:
        extrinsic: ``[..., A]``, values of the environment's rewards.
        intrinsic: ``[..., A]``, values of intrinsic rewards.
        beta: ``[..., 1]``, the weight of intrinsic rewards, at least 0.
        rescaling_epsilon: Epsilon of ``signed_hyperbolic``.
    """
    with torch.no_grad():
        parts = [signed_parabolic(q, rescaling_epsilon) for q in (extrinsic, intrinsic)]
        mixed = signed_hyperbolic(parts[0] + beta * parts[1], rescaling_epsilon)
        return torch.where(extrinsic < ILLEGAL / 2, extrinsic, mixed)


def td_errors(q_tm1: Tensor, a_tm1: Tensor, targets: Tensor) -> Tensor:
    """Returns ``targets`` minus the Q values of the actions taken, ``[T, B]``.

    Args:
        q_tm1: ``[T, B, A]`` Q values.
        a_tm1: ``[T, B]`` int64 actions taken.
        targets: ``[T, B]``; they get no gradient.
    """
    return targets.detach() - q_tm1.gather(-1, a_tm1[..., None]).squeeze(-1)


def td_loss(errors: Tensor, huber_delta: float | None = None) -> Tensor:
    """Returns half the squared TD errors, or the Huber loss, ``[T, B]``.

    Args:
        errors: ``[T, B]``, TD errors.
        huber_delta: Error above 0 beyond which the loss is linear; None for no limit.
    """
    if huber_delta is None:
        return 0.5 * errors.square()
    return functional.huber_loss(
        errors, torch.zeros_like(errors), delta=huber_delta, reduction="none"
    )


def sequence_priorities(td_errors: Tensor, is_learned: Tensor, eta: float) -> Tensor:
    """Returns eta * maximum error + (1 - eta) * mean error, ``[B]`` float32.

    Errors are absolute TD errors. A sequence without learned rows has priority 0.

    Args:
        td_errors: ``[T, B]`` float32.
        is_learned: ``[T, B]`` bool, whether the row has a loss; false in burn-in and in
            reset steps.
        eta: Weight of the maximum error, in [0, 1]; 0.9 in the R2D2 paper.
    """
    sizes = torch.where(is_learned, td_errors.detach().abs(), 0.0)
    means = sizes.sum(0) / is_learned.sum(0).clamp_min(1)
    return eta * sizes.amax(0) + (1.0 - eta) * means


def signed_hyperbolic(x: Tensor, epsilon: float) -> Tensor:
    """Returns h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x, with the shape of x.

    Args:
        x: Float32 of any shape.
        epsilon: A small number such as 1e-3, at least 0.
    """
    # Avoids cancellation: sqrt(a + 1) - 1 = a / (sqrt(a + 1) + 1).
    return x * (1.0 / ((x.abs() + 1.0).sqrt() + 1.0) + epsilon)


def signed_parabolic(y: Tensor, epsilon: float) -> Tensor:
    """Returns the x whose ``signed_hyperbolic`` is y, with the shape of y.

    Args:
        y: Float32 of any shape.
        epsilon: As in ``signed_hyperbolic``.
    """
    # Let u = sqrt(|x| + 1) - 1. Then |x| = u (u + 2), and |y| = epsilon u (u + 2) + u,
    # so u is the root of epsilon u^2 + (1 + 2 epsilon) u - |y|. The form u = 2 |y| /
    # divisor avoids cancellation.
    size, slope = y.abs(), 1.0 + 2.0 * epsilon
    divisor = slope + (slope * slope + 4.0 * epsilon * size).sqrt()
    return 2.0 * y / divisor * (2.0 * size / divisor + 2.0)


def quantile_huber_loss(
    quantiles: Tensor, fractions: Tensor, targets: Tensor
) -> Tensor:
    """Returns the quantile Huber loss, ``[B]``, summed over the N quantiles.

    With u = target - quantile, the loss of each pair is ``|fraction - 1[u < 0]| *
    Huber(u)``, linear beyond errors of 1; the mean is over the M targets. So for
    fraction 0.9, targets above the quantile have nine times the weight of those below.

    Args:
        quantiles: ``[B, N]``, predicted quantiles.
        fractions: ``[B, N]`` in (0, 1), the fraction of returns below each quantile.
        targets: ``[B, M]``; they get no gradient.
    """
    wanted = targets.detach()[:, None, :]
    answers = quantiles[:, :, None].expand(-1, -1, targets.shape[1])
    huber = functional.huber_loss(answers, wanted.expand_as(answers), reduction="none")
    is_below = (wanted < answers.detach()).to(huber.dtype)
    weights = (fractions[:, :, None] - is_below).abs()
    return (weights * huber).mean(2).sum(1)
