"""What every store is measured with: items of bytes, and what a learner asks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from peer import Table

__all__ = ["WORKLOADS", "Workload"]

_KB = 1024
_MB = 1024 * _KB


@dataclass(frozen=True)
class Workload:
    """Items of one size, some hundred megabytes of them, and batches of them.

    Attributes:
        item_bytes: Of each.
        num_items: That the table holds when it is full.
        batch_size: Items a sample.
        is_prioritized: Whether a batch's priorities are sent back.
        insert_sizes: Items that the writer has at hand at once, a figure each.
    """

    item_bytes: int
    num_items: int
    batch_size: int
    is_prioritized: bool
    insert_sizes: tuple[int, ...]

    @property
    def table(self) -> Table:
        """What the store is to hold."""
        columns = {"data": ("uint8", (self.item_bytes,))}
        return Table(columns, self.num_items, self.batch_size, self.is_prioritized)

    def items(self, count: int) -> NDArray[np.uint8]:
        """Returns ``[count, item_bytes] uint8`` of noise, the same in every store.

        Noise, so that a store that always compresses has nothing to gain, and nothing
        to lose but the attempt.
        """
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (count, self.item_bytes), np.uint8)


WORKLOADS = {
    "3KB": Workload(3 * _KB, 40_000, 256, True, (64, 1)),
    "110KB": Workload(110 * _KB, 8192, 32, True, (1,)),
    "3MB": Workload(3 * _MB, 256, 8, False, (1,)),
    "10MB": Workload(10 * _MB, 96, 8, True, (1,)),
}
