"""Ray: its object store, and a replay actor on top of it.

Ray has no sampler. `Objects` puts each item into the object store; the learner samples
references with cpprb's trees, and stacks the items. `ReplayActor` is the usual pattern:
one actor has the buffer (here cpprb's, in C++) and returns complete batches through the
object store without another copy; a few calls are kept in flight.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import ray
from cpprb_peer import InProcess
from numpy.typing import NDArray
from peer import Columns, Drawn, Table

_BATCHES_IN_FLIGHT = 2
_ADDS_IN_FLIGHT = 64


class Objects:
    """One Ray object per item; the learner samples the references."""

    def __init__(self, table: Table) -> None:
        _start(table)
        self._table = table
        self._references: list[Any] = [None] * table.num_items
        places = {"place": ("int64", ())}
        self._draws = InProcess(
            Table(places, table.num_items, table.batch_size, table.is_prioritized)
        )
        self._next = 0

    def insert(self, columns: Columns) -> None:
        for values in zip(*columns.values(), strict=True):
            item = dict(zip(columns, values, strict=True))
            self._references[self._next] = ray.put(item)
            self._draws.insert({"place": np.array([self._next])})
            self._next = (self._next + 1) % len(self._references)

    def flush(self) -> None:
        pass

    def sample(self) -> Drawn:
        drawn = self._draws.sample()
        places = drawn.columns["place"].ravel().tolist()
        items = ray.get([self._references[place] for place in places])
        columns = {
            name: np.stack([item[name] for item in items])
            for name in self._table.columns
        }
        return Drawn(columns, drawn.weights, drawn.update)

    def close(self) -> None:
        ray.shutdown()


class ReplayActor:
    """A Ray actor that holds a buffer."""

    def __init__(self, table: Table) -> None:
        _start(table)
        self._actor: Any = ray.remote(_Buffer).options(num_cpus=0).remote(table)
        self._batches: deque[Any] = deque()
        self._adds: deque[Any] = deque()

    def insert(self, columns: Columns) -> None:
        self._adds.append(self._actor.add.remote(columns))
        if len(self._adds) > _ADDS_IN_FLIGHT:
            ray.get(self._adds.popleft())

    def flush(self) -> None:
        ray.get(list(self._adds))
        self._adds.clear()

    def sample(self) -> Drawn:
        while len(self._batches) < _BATCHES_IN_FLIGHT:
            self._batches.append(self._actor.sample.remote())
        columns, weights, places = ray.get(self._batches.popleft())

        def update(priorities: NDArray[np.float64] | None) -> None:
            if priorities is not None:
                self._actor.update.remote(places, priorities)

        return Drawn(columns, weights, update)

    def close(self) -> None:
        ray.shutdown()


class _Buffer:
    def __init__(self, table: Table) -> None:
        self._buffer = InProcess(table)

    def add(self, columns: Columns) -> None:
        self._buffer.insert(columns)

    def sample(self) -> Any:
        drawn = self._buffer.sample()
        return drawn.columns, drawn.weights, drawn.columns.get("indexes")

    def update(self, places: NDArray[Any], priorities: NDArray[np.float64]) -> None:
        self._buffer.update(places, priorities)


def _start(table: Table) -> None:
    ray.init(
        object_store_memory=table.num_bytes * 3 // 2 + (1 << 30),
        include_dashboard=False,
        log_to_driver=False,
    )
