"""DI-engine: its buffer, with its middleware for priorities, in one process.

A batch is a list of items, which is stacked into arrays as in the framework's own
collate function. DI-engine's actors send batches to the buffer's process through a
message queue, whose additional cost is not measured here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ding.data import DequeBuffer
from ding.data.buffer.middleware import PriorityExperienceReplay
from numpy.typing import NDArray
from peer import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Columns, Drawn, Table


class InProcess:
    """``DequeBuffer``, with ``PriorityExperienceReplay`` if prioritized."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._buffer = DequeBuffer(size=table.num_items)
        if table.is_prioritized:
            self._buffer.use(
                PriorityExperienceReplay(
                    self._buffer,
                    IS_weight=True,
                    priority_power_factor=PRIORITY_EXPONENT,
                    IS_weight_power_factor=IMPORTANCE_EXPONENT,
                    # A large value keeps the exponent near the start of its schedule.
                    IS_weight_anneal_train_iter=int(1e9),
                )
            )

    def insert(self, columns: Columns) -> None:
        for values in zip(*columns.values(), strict=True):
            item = dict(zip(columns, map(np.copy, values), strict=True))
            self._buffer.push(item, meta={"priority": 1.0})

    def flush(self) -> None:
        pass

    def sample(self) -> Drawn:
        drawn = self._buffer.sample(self._table.batch_size)
        columns = {
            name: np.stack([one.data[name] for one in drawn])
            for name in self._table.columns
        }
        if not self._table.is_prioritized:
            return Drawn(columns, None, lambda _: None)
        weights = np.array([one.meta["priority_IS"] for one in drawn])

        def update(priorities: NDArray[np.float64] | None) -> None:
            assert priorities is not None
            for one, priority in zip(drawn, priorities, strict=True):
                meta: Any = {**one.meta, "priority": float(priority)}
                self._buffer.update(one.index, one.data, meta)

        return Drawn(columns, weights / weights.max(), update)

    def close(self) -> None:
        pass
