"""What an agent does with a batch: the seam between algorithms and the learner loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tengen.learners.group import ALONE, Group

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["LossParts", "Update"]


class LossParts(NamedTuple):
    """What a loss answers for the rows of part of a batch."""

    loss: Tensor
    """``[]``, a mean over the rows."""
    metrics: dict[str, Tensor]
    """``[]`` each, means over the rows, by name."""
    priorities: Tensor | None = None
    """``[rows]`` float32, at least 0, of each row's item from now on; None where the
    agent has none."""


class Update:
    """How an agent learns from a batch; the base of each agent's own.

    The learner calls it for each batch::

        for part_of_it in update.minibatches(net, columns):
            gradients = grad(update.loss(net, part_of_it))   # in parts, on threads
            optimizer.step(gradients)
            update.stepped(net, num_steps, metrics)

    An update that needs no more than a loss has one minibatch, the batch, and no state.

    Where several learners make a step together, each has an update of its own and
    calls it with its own rows of the batch: the columns of ``minibatches`` are those,
    they may be none, and every learner yields as many minibatches. ``loss`` needs no
    thought for that. Whatever ``minibatches`` computes over rows must be of all
    learners' rows, by ``group``, and what it draws for each row must be drawn for all
    rows on every learner, as the generators of all learners are equal::

        place = self.group.place(num_rows)
        noise = torch.randn(place.total, 4)[place.first :][:num_rows]

    Attributes:
        group: The learners that make a step together; the learner sets it.
        importance_exponent: Of the weights that the learner adds to a batch as
            ``importance_weight`` ``[B]`` float32, see ``Batch.importance_weights``;
            None for none.
        max_lag: Steps that the learner may have made since the oldest model that acted
            in an item. Older items of a batch are left out: it is then smaller, and
            where all are it has no minibatch. For items of a queue, which get no
            priorities. None: all are learned from.
        later_state: Names of ``state`` that checkpoints of earlier versions lack. They
            are then as they were made.
    """

    group: Group = ALONE
    importance_exponent: float | None = None
    max_lag: int | None = None
    later_state: tuple[str, ...] = ()

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the columns of each step that a batch is good for.

        Args:
            net: The network in training, as it is before the first step.
            columns: ``[B, ...]`` each.
        """
        yield columns

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Returns the loss of some rows of a minibatch.

        The learner calls it on several threads at once and averages by rows: so it
        keeps no state, uses no randomness, and divides by the number of rows and never
        by a sum of weights.

        Args:
            net: The network in training mode; shares its parameters with others.
            columns: ``[rows, ...]`` each.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a loss")

    def parameters(self) -> list[Tensor]:
        """Returns what is learned beside the network, such as critics.

        The optimizer steps them with the network's parameters, behind which they come.
        """
        return []

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """Moves what the update keeps to where the network is, before the first batch.

        Args:
            device: Where the network computes.
            dtype: In what (``Net.compute_dtype``).
        """

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """Takes note of a step of the optimizer; moves target networks.

        Args:
            net: The network in training, after the step.
            num_steps: Steps so far, over the whole run.
            metrics: The loss's, means over the rows of the minibatch.
        """

    def state(self) -> dict[str, Tensor]:
        """Returns what a checkpoint must have beside the network, by name."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes back what ``state`` returned, into an update made the same way."""
