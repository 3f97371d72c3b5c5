"""Batches of one table, drawn ahead where the store is in another process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.store.batch import Batch
from tengen.store.waiting import refused, wait_for

__all__ = ["Sampler"]


class Sampler:
    """Draws batches of one size. For one thread; batches may outlive it.

    A batch counts as used once it is acknowledged. What is drawn and not acknowledged
    when the sampler goes, by ``close``, by the end of its process or by a kill, was
    never used.

    Args:
        core: The core's sampler.
        table: The table's name, for errors.
    """

    def __init__(self, core: _core.ReplaySampler, table: str) -> None:
        self._core = core
        self._table = table

    def sample(self, timeout_s: float | None = None) -> Batch:
        """Returns the next batch. Blocks while the table's limiter says so.

        Args:
            timeout_s: The longest wait; None: for ever.

        Raises:
            StoreTimeout: There was none; nothing is lost.
            UsageError: The store has refused this client or has ended.
        """
        batch = wait_for(
            self._core.next, timeout_s, f"sample ({self._table})", self._core.waits
        )
        return Batch(
            batch.lease,
            batch.keys,
            batch.probabilities,
            batch.columns,
            batch.table_size,
            self._ack,
        )

    def give_back(self, batch: Batch) -> None:
        """Says that a batch was not used; its items may come again at once."""
        try:
            self._core.give_back(batch.lease)
        except _core.CoreError as error:
            raise refused(error) from error

    def __iter__(self) -> Iterator[Batch]:
        """Yields batches for ever."""
        while True:
            yield self.sample()

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        try:
            if priorities is not None:
                priorities = np.ascontiguousarray(priorities, np.float64)
            self._core.ack(lease, priorities)
        except _core.CoreError as error:
            raise refused(error) from error
