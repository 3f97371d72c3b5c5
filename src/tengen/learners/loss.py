"""What a loss is to the learner loop."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

__all__ = ["Loss"]


class Loss(Protocol):
    """A mean over the rows of a batch.

    The learner calls it on parts of a batch, on several threads at once, and averages
    by rows: so it keeps no state, uses no randomness, and divides by the number of
    rows and never by a sum of weights.
    """

    def __call__(
        self, net: nn.Module, columns: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the scalar loss and scalar metrics, each a mean over rows.

        Args:
            net: The network in training mode; shares its parameters with others.
            columns: ``[rows, ...]`` tensors of part of a batch.
        """
        ...
