"""What an agent does with a batch: the interface of algorithms to the learner loop."""

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
    """The loss of some rows of a batch, with its metrics."""

    loss: Tensor
    """``[]``, a mean over the rows."""
    metrics: dict[str, Tensor]
    """``[]`` each, on the device of the loss, means over the rows, by name."""
    priorities: Tensor | None = None
    """``[rows]`` float32, at least 0, the new priority of each row's item; None where
    the agent has no priorities."""


class Update:
    """How an agent learns from a batch; the base of each agent's update.

    The learner calls it for each batch::

        for part_of_it in update.minibatches(net, columns):
            gradients = grad(update.loss(net, part_of_it))   # in parts, on threads
            optimizer.step(gradients)
            update.stepped(net, num_steps, metrics)

    By default the whole batch is one minibatch, and the update has no state.

    Where several learners make a step together, each has its own update and calls it
    with its own rows of the batch, perhaps none; every learner must yield the same
    number of minibatches. ``loss`` need not take this into account. Whatever
    ``minibatches`` computes over rows must include all learners' rows, by ``group``.
    Random numbers for each row must be drawn for all rows on every learner, because
    the generators of all learners must stay equal::

        place = self.group.place(num_rows)
        noise = torch.randn(place.total, 4)[place.first :][:num_rows]

    Attributes:
        group: The learners that make a step together; the learner sets it.
        importance_exponent: Exponent of the importance weights that the learner adds to
            a batch as ``importance_weight`` ``[B]`` float32, see
            ``Batch.importance_weights``; None for no weights.
        max_lag: Largest policy lag of an item that is learned from: learner steps since
            the oldest model that acted in the item. Older items are left out of the
            batch; if all are, the batch has no minibatch. Only for items of a queue,
            which get no priorities. None: all items are learned from.
        later_state: Names in ``state`` that checkpoints of earlier versions lack. These
            tensors then keep their initial values.
    """

    group: Group = ALONE
    importance_exponent: float | None = None
    max_lag: int | None = None
    later_state: tuple[str, ...] = ()

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the columns of each optimizer step to make on a batch.

        Args:
            net: The network in training, before the first of these steps.
            columns: ``[B, ...]`` each.
        """
        yield columns

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Returns the loss of some rows of a minibatch.

        The learner calls this on several threads at once and averages over rows. So it
        must keep no state, use no randomness, and divide by the number of rows, never
        by a sum of weights.

        Args:
            net: A copy of the network in training mode, which shares its parameters.
            columns: ``[rows, ...]`` each.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a loss")

    def parameters(self) -> list[Tensor]:
        """Returns parameters that are learned beside the network, such as critics.

        The optimizer steps them together with the network's parameters, and has them
        after the network's.
        """
        return []

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """Moves the update's tensors to the network's device, before the first batch.

        Args:
            device: The device that the network computes on.
            dtype: The dtype that it computes in (``Net.compute_dtype``).
        """

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """Called after each optimizer step, for example to move target networks.

        Args:
            net: The network in training, after the step.
            num_steps: Steps so far, over the whole run.
            metrics: The loss's metrics, means over the rows of the minibatch.
        """

    def state(self) -> dict[str, Tensor]:
        """Returns the update's own tensors for a checkpoint, by name."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores what ``state`` returned, in an update made the same way."""
