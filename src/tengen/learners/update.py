"""The interface between an agent's learning algorithm and the learner loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tengen.learners.group import ALONE, Group

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from tengen.nets import Net


def module_state(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """Returns a module's tensors for ``Update.state``, named with a prefix."""
    return {prefix + name: tensor for name, tensor in module.state_dict().items()}


def load_module(prefix: str, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Restores a module from the tensors whose names begin with a prefix."""
    own = {name for name in tensors if name.startswith(prefix)}
    module.load_state_dict({n.removeprefix(prefix): tensors[n] for n in own})


class LossParts(NamedTuple):
    """The loss of some rows of a batch, with its metrics."""

    loss: Tensor
    """The loss, a mean over the rows; a scalar, ``[]``."""
    metrics: dict[str, Tensor]
    """Scalars by name, means over the rows, on the device of the loss."""
    priorities: Tensor | None = None
    """New priorities of the rows' items, ``[rows]`` float32, at least 0; None if the
    agent has no priorities."""


class Update:
    """Base class of an agent's learning algorithm, which computes losses of batches.

    For each batch the learner runs::

        for minibatch in update.minibatches(net, columns):
            gradients = grad(update.loss(net, minibatch))    # in parts, on threads
            optimizer.step(gradients)
            update.move_targets(net)
            update.stepped(net, num_steps, metrics)

    By default, the batch is one minibatch, and the update has no state.

    If several learners share each step, each learner has its own update and calls it
    with its rows of the batch, possibly none. Every update must yield the same number
    of minibatches. ``loss`` needs no knowledge of other learners. In ``minibatches``,
    statistics over rows must include all learners' rows, through ``group``, and every
    learner must generate the random numbers for all rows, because the random generators
    of all learners must stay equal. For example::

        place = self.group.place(num_rows)
        noise = torch.randn(place.total, 4)[place.first :][:num_rows]

    Attributes:
        group: The learners that share each step; set by the learner.
        is_recordable: Whether ``loss`` and ``move_targets`` perform the same operations
            on any minibatch of the same shapes. They then depend only on tensors that
            keep their memory, not on numbers in Python; they read no tensor's value,
            draw no random numbers and compute nothing outside torch. The learner may
            record the operations of a small network and repeat them
            (``tengen.learners.recorded``). Not inherited: each class declares it.
        importance_exponent: Exponent of the importance weights that the learner adds to
            a batch as ``importance_weight`` ``[B]`` float32; see
            ``Batch.importance_weights``. None: the batch has no such column.
        max_lag: Maximum policy lag of an item: the number of learner steps since the
            oldest model that acted in the item. Older items are removed from the batch;
            if none is left, the batch has no minibatch. Only for items of a queue,
            which have no priorities. None: no item is removed.
        later_state: Names in ``state`` that checkpoints of earlier versions lack. These
            tensors then keep their initial values.
    """

    group: Group = ALONE
    is_recordable: bool = False
    importance_exponent: float | None = None
    max_lag: int | None = None
    later_state: tuple[str, ...] = ()

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields minibatches of a batch, one per optimizer step; by default the batch.

        Args:
            net: The network in training, before the first optimizer step on the batch.
            columns: Columns of the batch by name, tensors of shape ``[B, ...]``.
        """
        yield columns

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Returns the loss of some rows of a minibatch.

        The learner calls this method concurrently on several threads, and averages the
        losses over rows. So the method must be stateless and deterministic, and divide
        by the number of rows, never by a sum of weights.

        Args:
            net: A copy of the network in training mode, which shares its parameters.
            columns: Columns of the rows by name, tensors of shape ``[rows, ...]``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss()")

    def parameters(self) -> list[Tensor]:
        """Returns parameters to train besides the network's, such as those of critics.

        The optimizer updates them together with the network's parameters, which come
        first in its order.
        """
        return []

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """Moves the update's tensors to a device. Called before the first batch.

        Args:
            device: The device of the network.
            dtype: The dtype in which the network computes (``Net.compute_dtype``).
        """

    def move_targets(self, net: Net) -> None:
        """Moves other networks towards ``net`` after each optimizer step.

        Args:
            net: The network, after the step.
        """

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """Called after each optimizer step, for example to copy a target network.

        Args:
            net: The network, after the step.
            num_steps: Number of optimizer steps in the run so far.
            metrics: The metrics from ``loss``, means over the rows of the minibatch.
        """

    def state(self) -> dict[str, Tensor]:
        """Returns the update's tensors for a checkpoint, by name."""
        return {}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restores the ``state`` of an update with equal settings."""
