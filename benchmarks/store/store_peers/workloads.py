"""The workloads of the measurement: item sizes and batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from peer import Table

_KB = 1024
_MB = 1024 * _KB


@dataclass(frozen=True)
class Workload:
    """Items of one size, some hundred megabytes in total, and the batches sampled.

    Attributes:
        item_bytes: Bytes per item.
        num_items: Capacity of the table.
        batch_size: Items per sample.
        is_prioritized: Whether a batch's priorities are sent back.
        insert_sizes: Items per call of the writer; one result for each size.
    """

    item_bytes: int
    num_items: int
    batch_size: int
    is_prioritized: bool
    insert_sizes: tuple[int, ...]

    @property
    def table(self) -> Table:
        """Returns the table that a store creates."""
        columns = {"data": ("uint8", (self.item_bytes,))}
        return Table(columns, self.num_items, self.batch_size, self.is_prioritized)

    def items(self, count: int) -> NDArray[np.uint8]:
        """Returns ``[count, item_bytes] uint8`` of noise, the same for every store.

        Noise is incompressible: a store that always compresses only loses time.
        """
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (count, self.item_bytes), np.uint8)


WORKLOADS = {
    "3KB": Workload(3 * _KB, 40_000, 256, True, (64, 1)),
    "110KB": Workload(110 * _KB, 8192, 32, True, (1,)),
    "3MB": Workload(3 * _MB, 256, 8, False, (1,)),
    "10MB": Workload(10 * _MB, 96, 8, True, (1,)),
}
