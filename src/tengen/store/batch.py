"""A batch: samples that are on loan to a learner until it acknowledges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """B samples, lent to the learner until it acknowledges them.

    Attributes:
        lease: The number of this loan; loans count up from 0.
        keys: ``[B] int64``, the keys of the rows or items.
        probabilities: ``[B] float64``, the chance of each in one draw.
        columns: The arrays, ``[B, ...]`` each.
        table_size: How many items, or rows, the batch was drawn from.
    """

    lease: int
    keys: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    columns: Mapping[str, Any]
    table_size: int
    _ack: Callable[[int, NDArray[np.float64] | None], None] = field(repr=False)

    def importance_weights(
        self, exponent: float, greatest: float | None = None
    ) -> NDArray[np.float64]:
        """Returns the weights that correct a loss for uneven draws.

        Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.4:
        ``(N * P(i)) ** -exponent``, divided by the greatest of the batch.

        Args:
            exponent: The paper's beta, 0 (no correction) to 1 (all of it).
            greatest: If this is a part of a batch, the greatest ``greatest_weight`` of
                all parts; None if this is the whole batch.

        Returns:
            ``[B] float64``, above 0, at most 1.
        """
        weights = (self.table_size * self.probabilities) ** -exponent
        return np.asarray(weights / (greatest or weights.max()), np.float64)

    def greatest_weight(self, exponent: float) -> float:
        """Returns the greatest importance weight before the weights are divided by it.

        Args:
            exponent: As for ``importance_weights``.
        """
        return float(((self.table_size * self.probabilities) ** -exponent).max())

    def ack(self, priorities: NDArray[np.float64] | None = None) -> None:
        """Says that the learner is done with the batch.

        Each batch is acknowledged once. Batches of a window of games or of shuffled
        shards, which a learner's checkpoint restores, are acknowledged in the order of
        their leases, so that the batches that a checkpoint counts as used are a prefix.

        Args:
            priorities: ``[B]``, new priorities for a sampler that uses them; else None.

        Raises:
            UsageError: Acknowledged out of order or twice, or with priorities that
                nothing uses.
        """
        self._ack(self.lease, priorities)
