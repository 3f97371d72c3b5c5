"""A batch: samples that a learner has until it acknowledges them."""

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
        keys: ``[B] int64``, which rows or items.
        probabilities: ``[B] float64``, the chance of each in one draw.
        columns: The arrays, ``[B, ...]`` each; lists of B arrays where they were not
            copied.
        table_size: Items, or rows, that were drawn from.
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
        """Returns what corrects a loss for draws that were not even.

        Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.4:
        ``(N * P(i)) ** -exponent``, divided by the greatest of the batch.

        Args:
            exponent: The paper's beta, 0 (no correction) to 1 (all of it).
            greatest: Where this is part of a batch, the greatest of
                ``greatest_weight`` of all parts; None: this is all of it.

        Returns:
            ``[B] float64``, above 0, at most 1.
        """
        weights = (self.table_size * self.probabilities) ** -exponent
        return np.asarray(weights / (greatest or weights.max()), np.float64)

    def greatest_weight(self, exponent: float) -> float:
        """Returns the greatest weight of the samples before it is made 1.

        Args:
            exponent: As for ``importance_weights``.
        """
        return float(((self.table_size * self.probabilities) ** -exponent).max())

    def ack(self, priorities: NDArray[np.float64] | None = None) -> None:
        """Says that the learner is done with the batch.

        Each batch is acknowledged once. Those of experience that a learner's checkpoint
        restores, a window of games or shuffled shards, are acknowledged in the order of
        their leases, so that what a checkpoint counts as used is a prefix.

        Args:
            priorities: ``[B]``, for samplers that use them; None for the others.

        Raises:
            UsageError: Out of order, twice, or with priorities that nobody uses.
        """
        self._ack(self.lease, priorities)
