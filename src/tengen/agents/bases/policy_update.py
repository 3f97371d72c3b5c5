"""``PolicyUpdate``, the base class of policy updates, and their running scales."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from tengen import envs
from tengen.agents.bases.policy_agent import PolicyAgent
from tengen.learners import LossParts, Update
from tengen.learners.group import ALONE, Group

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

# Decay of the running mean per batch, for a horizon of about a hundred batches.
_DECAY = 0.99
# A batch's mean square is clipped to this multiple of the running mean. So one batch at
# most doubles the running mean, which still adapts to new rewards in a few batches.
_MOST_TIMES = 100.0


class RunningSquare:
    """A running mean of squares, by default over about a hundred batches; initially 1.

    The mean square of a batch is clipped to a hundred times the running mean (at least
    ``least**2``). By default the effect of an outlier halves in about seventy batches.
    """

    def __init__(self, least: float, decay: float = _DECAY) -> None:
        """Creates a running mean without batches.

        Args:
            least: The minimum of ``root``, above 0.
            decay: Decay of the running mean per batch, in [0, 1).
        """
        self._least = least
        self._decay = decay
        self._square = 0.0
        self._weight = 0.0

    @property
    def root(self) -> float:
        """The root mean square, at least ``least``; 1 before any batch."""
        return max(self._least, math.sqrt(self._mean))

    def observe(self, square: float) -> None:
        """Adds ``square``, the mean square of a batch; it may be infinite or NaN."""
        most = _MOST_TIMES * max(self._least**2, self._mean)
        bounded = square if square <= most else most  # also for NaN
        self._square += (1.0 - self._decay) * (bounded - self._square)
        self._weight += (1.0 - self._decay) * (1.0 - self._weight)

    def numbers(self) -> list[float]:
        """Returns the running mean's state as numbers for a checkpoint."""
        return [self._square, self._weight]

    def load(self, numbers: list[float]) -> None:
        """Restores the state from the result of ``numbers``.

        Resets a mean that is not finite, because earlier versions could save one.
        """
        is_finite = all(map(math.isfinite, numbers))
        self._square, self._weight = numbers if is_finite else (0.0, 0.0)

    @property
    def _mean(self) -> float:
        return self._square / self._weight if self._weight else 1.0


# Maximum of scaled rewards. Larger ones are outliers, or come before the scale has
# adapted, and their squared errors would dominate the loss.
_MOST = 100.0


class ReturnScale:
    """The running root mean square of returns within unrolls, by default at least 1.

    Updates divide rewards by this scale. A network whose policy and value share an LSTM
    computes both from activations in [-1, 1]. A value of a hundred would saturate the
    activations, and the value's errors would dominate the policy's gradient. Small
    returns are not scaled up, because dividing by less than 1 would amplify noise.

    A return is truncated at the end of its unroll, because later rewards are unknown.
    The scale is therefore too small for long episodes, by a constant factor that does
    not affect learning. In exchange, it does not depend on a network's estimates.

    Source: Engstrom et al. 2020, "Implementation Matters in Deep Policy Gradients"
    (arXiv:2005.12729), section 3, for dividing rewards by the scale of discounted
    returns; Hafner et al. 2023, "Mastering Diverse Domains through World Models"
    (arXiv:2301.04104), equation 7, for the minimum scale of 1.
    """

    def __init__(self, discount: float, square: RunningSquare | None = None) -> None:
        """Creates a scale whose initial value is 1.

        Args:
            discount: Discount per step, in [0, 1].
            square: The running mean of squared returns; None for the default.
        """
        self._discount = discount
        self._square = square or RunningSquare(least=1.0)

    @property
    def value(self) -> float:
        """The number by which rewards are divided."""
        return self._square.root

    def scaled(self, reward: Tensor) -> Tensor:
        """Returns ``reward`` divided by the scale and clipped to [-100, 100]."""
        return (reward / self.value).clamp(-_MOST, _MOST)

    def divided(self, columns: dict[str, Tensor], group: Group) -> dict[str, Tensor]:
        """Updates the scale with a batch, then returns the batch with scaled rewards.

        Args:
            columns: Columns as in ``tengen.actors.block``, ``[B, T + 1, ...]``.
            group: The group of learners that share the batch.
        """
        names = ("reward", "terminated", "is_reset")
        reward, terminated, is_reset = (columns[name][:, :-1] for name in names)
        self.observe(reward, terminated, is_reset, group)
        return {**columns, "reward": self.scaled(columns["reward"])}

    def observe(
        self,
        reward: Tensor,
        terminated: Tensor,
        is_reset: Tensor,
        group: Group = ALONE,
    ) -> None:
        """Updates the scale with the rewards of a batch.

        Args:
            reward: ``[B, T]`` float32.
            terminated: ``[B, T]``, 1 if the action led to a terminal state.
            is_reset: ``[B, T]``, 1 for reset steps, which are not transitions.
            group: The group of learners that share the batch.
        """
        import torch

        is_live = is_reset == 0
        goes_on = self._discount * (terminated == 0)
        # Use float64, because squares of float32 values may overflow float32.
        reward = reward.double()
        following = torch.zeros_like(reward[:, 0])
        total = torch.zeros_like(following)
        for t in range(reward.shape[1] - 1, -1, -1):
            # Not products with 0, because a return may be infinite.
            later = torch.where(goes_on[:, t] > 0, goes_on[:, t] * following, 0.0)
            following = torch.where(is_live[:, t], reward[:, t] + later, 0.0)
            total += following**2
        if group.size == 1:
            mean = float(total.sum() / is_live.sum().clamp(min=1))
        else:
            each = group.gather([float(total.sum()), float(is_live.sum())]).sum(axis=0)
            mean = float(each[0] / max(1.0, each[1]))
        self._square.observe(mean)

    def state(self) -> dict[str, Tensor]:
        """Returns the state of the scale as tensors for a checkpoint."""
        import torch

        both = torch.tensor(self._square.numbers(), dtype=torch.float64)
        return {"return_scale": both}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores the scale from the result of ``state``."""
        self._square.load(tensors["return_scale"].tolist())


ADVANTAGE_SQUARE = "advantage_square"
"""Name of the metric from which ``PolicyUpdate`` computes the scale of advantages."""

# Minimum scale of advantages, because smaller advantages are noise around the values.
_LEAST_SCALE = 0.01


A = TypeVar("A", bound=PolicyAgent)


class PolicyUpdate(Update, Generic[A]):
    """Base class of policy updates, which divides rewards by the scale of returns.

    Attributes:
        distribution: The action distribution.
        policy_output: Name of the network output with the distribution's parameters.
    """

    later_state: tuple[str, ...] = ("return_scale", "advantage_scale")

    def __init__(self, agent: A, actions: envs.ActionSpec) -> None:
        """Creates the action distribution and the running scales.

        Args:
            agent: The agent's settings.
            actions: The environment's action space.
        """
        from tengen.losses import make_distribution

        self._agent = agent
        self.distribution = make_distribution(
            actions.num_choices, actions.shape, agent.scale_of(actions)
        )
        self.policy_output = agent.policy_output
        self._scale = ReturnScale(agent.discount)
        self.max_lag = agent.lag_bound
        self._advantage_square = RunningSquare(_LEAST_SCALE)

    @property
    def advantage_scale(self) -> float:
        """The divisor of advantages: their running root mean square, initially 1.

        With scaled advantages, the weight of the entropy bonus has the same effect for
        rare and frequent rewards. PPO instead normalises over each minibatch.

        Source: Schulman et al. 2017 and later work normalise advantages over a
        minibatch. Differs from the source: the mean is not subtracted, because
        advantages are already relative to a baseline; the scale comes from earlier
        steps, so that a batch can be split among threads.
        """
        return self._advantage_square.root

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """Updates the scale of advantages; see ``Update.stepped``."""
        if ADVANTAGE_SQUARE in metrics:
            self._advantage_square.observe(metrics[ADVANTAGE_SQUARE])

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the batch with scaled rewards; see ``Update.minibatches``."""
        yield self.scaled(columns)

    def weighted(self, metrics: dict[str, Tensor]) -> LossParts:
        """Returns the weighted sum of the losses and the entropy in ``metrics``."""
        loss = (
            metrics["policy_loss"]
            + self._agent.baseline_cost * metrics["baseline_loss"]
            - self._agent.entropy_cost * metrics["entropy"]
        )
        return LossParts(loss, metrics)

    def scaled(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the batch with scaled rewards; see ``ReturnScale.divided``."""
        return self._scale.divided(columns, self.group)

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        import torch

        both = torch.tensor(self._advantage_square.numbers(), dtype=torch.float64)
        return {**self._scale.state(), "advantage_scale": both}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        self._scale.load_state(tensors)
        self._advantage_square.load(tensors["advantage_scale"].tolist())
