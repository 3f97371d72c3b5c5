"""A batch of samples, which is on loan until the learner acknowledges the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Batch:
    """B samples that are on loan until the learner acknowledges them.

    Attributes:
        lease: The ID of this loan; loans are numbered from 0.
        keys: ``[B] int64``, the keys of the rows or items.
        probabilities: ``[B] float64``, the probability of sampling each row or item.
        columns: The samples' arrays by column name, of shape ``[B, ...]``.
        table_size: The number of items or rows that the batch was sampled from; ``[B]``
            if the samples are from several tables.
    """

    lease: int
    keys: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    columns: Mapping[str, Any]
    table_size: int | NDArray[np.int64]
    _ack: Callable[[int, NDArray[np.float64] | None], None] = field(repr=False)

    def importance_weights(
        self, exponent: float, greatest: float | None = None
    ) -> NDArray[np.float64]:
        """Returns the weights that correct a loss for non-uniform sampling.

        Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.4:
        ``(N * P(i)) ** -exponent``, divided by the maximum of the batch.

        Args:
            exponent: The paper's beta, 0 (no correction) to 1 (full correction).
            greatest: If this batch is a shard, the maximum of ``greatest_weight`` over
                all shards; None if this batch is complete.

        Returns:
            ``[B] float64``, in (0, 1].
        """
        weights = (self.table_size * self.probabilities) ** -exponent
        return np.asarray(weights / (greatest or weights.max()), np.float64)

    def greatest_weight(self, exponent: float) -> float:
        """Returns the maximum importance weight in the batch, not normalized.

        Args:
            exponent: The exponent passed to ``importance_weights``.
        """
        return float(((self.table_size * self.probabilities) ** -exponent).max())

    def ack(self, priorities: NDArray[np.float64] | None = None) -> None:
        """Acknowledges the batch, which then counts as used.

        Each batch is acknowledged once. Batches of a window of games or of shuffled
        shards must be acknowledged in the order of their leases, so that the used
        batches in a learner's checkpoint have no gaps.

        Args:
            priorities: ``[B]``, new priorities; None for a sampler without priorities.

        Raises:
            UsageError: The batch is acknowledged out of order or twice, or the table
                does not use priorities.
        """
        self._ack(self.lease, priorities)
