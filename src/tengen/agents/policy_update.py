"""What the updates of the agents that learn a policy share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tengen import envs
from tengen.agents.return_scale import ReturnScale
from tengen.learners import Update

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["PolicyUpdate"]


class PolicyUpdate(Update):
    """The distribution of actions, and rewards divided by the scale of returns.

    Attributes:
        distribution: What the network's ``policy`` says, of actions.
    """

    def __init__(self, discount: float, actions: envs.ActionSpec) -> None:
        """Makes what is shared.

        Args:
            discount: Of one step.
            actions: What an action is.
        """
        from tengen.losses import make_distribution

        self.distribution = make_distribution(actions.num_choices, actions.shape)
        self._scale = ReturnScale(discount)

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
        self._scale.observe(*(columns[name][:, :-1] for name in names))
        return {**columns, "reward": columns["reward"] / self._scale.value}

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        return self._scale.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        # Checkpoints of PPO and A2C of earlier versions have none.
        if tensors:
            self._scale.load_state(tensors)
