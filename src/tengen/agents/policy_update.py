"""What the updates of the agents that learn a policy share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tengen import envs
from tengen.agents.policy_agent import PolicyAgent
from tengen.agents.return_scale import ReturnScale
from tengen.learners import Update

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["ADVANTAGE_SQUARE", "PolicyUpdate"]

ADVANTAGE_SQUARE = "advantage_square"
"""The metric of a loss that ``PolicyUpdate.advantage_scale`` goes by."""

# Of the average over steps: a hundred of them.
_DECAY = 0.99
# Smaller advantages are noise about what is known.
_LEAST_SCALE = 0.01


class PolicyUpdate(Update):
    """The distribution of actions, and rewards divided by the scale of returns.

    Attributes:
        distribution: What the network's ``policy`` says, of actions.
    """

    later_state = ("return_scale", "advantage_scale")

    def __init__(self, agent: PolicyAgent, actions: envs.ActionSpec) -> None:
        """Makes what is shared.

        Args:
            agent: Its settings.
            actions: What an action is.
        """
        from tengen.losses import make_distribution

        self.distribution = make_distribution(actions.num_choices, actions.shape)
        self._scale = ReturnScale(agent.discount)
        self.max_lag = agent.lag_bound
        self._square = 0.0
        self._weight = 0.0

    @property
    def advantage_scale(self) -> float:
        """What to divide advantages by: their root mean square of late, 1 at first.

        With it the weight of the entropy bonus means the same where rewards are rare
        and where they are not. PPO, whose loss has whole minibatches, does without.

        Source: Schulman et al. 2017 and since normalise advantages over a minibatch.
        Differs from it: the mean stays, which the baseline is there for, and the scale
        is of the steps before, so that a batch may be split among threads.
        """
        if self._weight == 0.0:
            return 1.0
        return max(_LEAST_SCALE, math.sqrt(self._square / self._weight))

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """See ``Update.stepped``: takes note of how large advantages are."""
        if ADVANTAGE_SQUARE in metrics:
            square = metrics[ADVANTAGE_SQUARE]
            self._square += (1.0 - _DECAY) * (square - self._square)
            self._weight += (1.0 - _DECAY) * (1.0 - self._weight)

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """See ``Update.minibatches``: the batch, its rewards scaled."""
        yield self.scaled(columns)

    def scaled(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns a batch with its rewards scaled, after a look at its returns.

        Args:
            columns: ``[B, T + 1, ...]`` each, as ``tengen.actors.block`` lists them.
        """
        names = ("reward", "terminated", "is_reset")
        reward, terminated, is_reset = (columns[name][:, :-1] for name in names)
        self._scale.observe(reward, terminated, is_reset, self.group)
        return {**columns, "reward": columns["reward"] / self._scale.value}

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        import torch

        both = torch.tensor([self._square, self._weight], dtype=torch.float64)
        return {**self._scale.state(), "advantage_scale": both}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        self._scale.load_state(tensors)
        self._square, self._weight = tensors["advantage_scale"].tolist()
