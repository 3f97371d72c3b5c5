"""cpprb: its prioritized buffer in one process, and its multiprocess variant.

As cpprb's manual advises, there is one ``add`` per block, and one ``sample`` and one
``update_priorities`` per batch. `Shared` stores data and trees in shared memory, and
the learner samples in its own process. Each batch is a new array.
"""

from __future__ import annotations

from typing import Any

import cpprb
from peer import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Columns, Drawn, Table


class InProcess:
    """``PrioritizedReplayBuffer``, or ``ReplayBuffer`` for uniform sampling."""

    _prioritized = cpprb.PrioritizedReplayBuffer
    _uniform = cpprb.ReplayBuffer

    def __init__(self, table: Table) -> None:
        columns = {
            name: {"shape": shape or 1, "dtype": dtype}
            for name, (dtype, shape) in table.columns.items()
        }
        self._table = table
        if table.is_prioritized:
            self._buffer: Any = self._prioritized(
                table.num_items, columns, alpha=PRIORITY_EXPONENT
            )
        else:
            self._buffer = self._uniform(table.num_items, columns)

    def insert(self, columns: Columns) -> None:
        self._buffer.add(**columns)

    def flush(self) -> None:
        pass

    def sample(self) -> Drawn:
        if not self._table.is_prioritized:
            batch = self._buffer.sample(self._table.batch_size)
            return Drawn(batch, None, lambda _: None)
        batch = self._buffer.sample(self._table.batch_size, IMPORTANCE_EXPONENT)
        places = batch["indexes"]
        return Drawn(
            batch,
            batch["weights"],
            lambda priorities: self.update(places, priorities),
        )

    def update(self, places: Any, priorities: Any) -> None:
        self._buffer.update_priorities(places, priorities)

    def close(self) -> None:
        pass


class Shared(InProcess):
    """``MPPrioritizedReplayBuffer``: any process can add, one learner samples."""

    _prioritized = cpprb.MPPrioritizedReplayBuffer
    _uniform = cpprb.MPReplayBuffer
