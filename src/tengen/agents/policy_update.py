"""The base of the updates of all agents that learn a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tengen import envs
from tengen.agents.policy_agent import PolicyAgent
from tengen.agents.return_scale import ReturnScale, RunningSquare
from tengen.learners import Update

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["ADVANTAGE_SQUARE", "PolicyUpdate"]

ADVANTAGE_SQUARE = "advantage_square"
"""The loss metric that ``PolicyUpdate.advantage_scale`` is computed from."""

# The scale goes no lower: smaller advantages are noise around values already learned.
_LEAST_SCALE = 0.01


class PolicyUpdate(Update):
    """Base of policy updates: divides rewards by the scale of returns.

    Attributes:
        distribution: The distribution of actions that the network's policy
            parametrises.
        policy_output: The name of that output.
    """

    later_state = ("return_scale", "advantage_scale")

    def __init__(self, agent: PolicyAgent, actions: envs.ActionSpec) -> None:
        """Makes the distribution and the running scales.

        Args:
            agent: The agent's settings.
            actions: The environment's action space.
        """
        from tengen.losses import make_distribution

        self.distribution = make_distribution(
            actions.num_choices, actions.shape, agent.scale_of(actions)
        )
        self.policy_output = agent.policy_output
        self._scale = ReturnScale(agent.discount)
        self.max_lag = agent.lag_bound
        self._advantage_square = RunningSquare(_LEAST_SCALE)

    @property
    def advantage_scale(self) -> float:
        """What to divide advantages by: their running root mean square, 1 at first.

        With this scale the weight of the entropy bonus means the same whether rewards
        are rare or frequent. PPO does not use it: PPO normalises over each minibatch.

        Source: Schulman et al. 2017 and later work normalise advantages over a
        minibatch. Differs from the source: the mean is not subtracted, since the
        baseline does that, and the scale comes from earlier steps, so that a batch may
        be split among threads.
        """
        return self._advantage_square.root

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """See ``Update.stepped``: updates the scale of advantages."""
        if ADVANTAGE_SQUARE in metrics:
            self._advantage_square.observe(metrics[ADVANTAGE_SQUARE])

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """See ``Update.minibatches``: the batch, its rewards scaled."""
        yield self.scaled(columns)

    def scaled(self, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Updates the scale of returns, then returns the batch with scaled rewards.

        Args:
            columns: ``[B, T + 1, ...]`` each, as ``tengen.actors.block`` lists them.
        """
        names = ("reward", "terminated", "is_reset")
        reward, terminated, is_reset = (columns[name][:, :-1] for name in names)
        self._scale.observe(reward, terminated, is_reset, self.group)
        return {**columns, "reward": self._scale.scaled(columns["reward"])}

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        import torch

        both = torch.tensor(self._advantage_square.numbers(), dtype=torch.float64)
        return {**self._scale.state(), "advantage_scale": both}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        self._scale.load_state(tensors)
        self._advantage_square.load(tensors["advantage_scale"].tolist())
