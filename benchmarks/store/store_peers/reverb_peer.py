"""Reverb: a server in its own process, a trajectory writer and a data set.

Configured for speed as its manual advises: ``TrajectoryWriter`` flushed so that some
items stay in flight; ``TrajectoryDataset`` with its default number of workers and
samples for two batches in flight, batched and prefetched by ``tf.data``; and one
``mutate_priorities`` per batch. The server always compresses.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peer import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Columns, Drawn, Table

_SPAWN = multiprocessing.get_context("spawn")
_ITEMS_IN_FLIGHT = 64


class AcrossProcesses:
    """The server in its own process; writer and data set are its clients."""

    def __init__(self, table: Table) -> None:
        import reverb

        self._pipe, theirs = _SPAWN.Pipe()
        self._server = _SPAWN.Process(target=_serve, args=(theirs, table), daemon=True)
        self._server.start()
        theirs.close()
        self._address = f"localhost:{self._pipe.recv()}"
        self._client = reverb.Client(self._address)
        self._writer = self._client.trajectory_writer(num_keep_alive_refs=1)
        self._table = table
        self._batches: Any = None

    def insert(self, columns: Columns) -> None:
        for values in zip(*columns.values(), strict=True):
            self._writer.append(dict(zip(columns, values, strict=True)))
            trajectory = {name: self._writer.history[name][-1:] for name in columns}
            self._writer.create_item("table", priority=1.0, trajectory=trajectory)
        self._writer.flush(block_until_num_items=_ITEMS_IN_FLIGHT)

    def flush(self) -> None:
        self._writer.flush()

    def sample(self) -> Drawn:
        if self._batches is None:
            self._batches = self._dataset().as_numpy_iterator()
        batch = next(self._batches)
        columns = {name: array[:, 0] for name, array in batch.data.items()}
        if not self._table.is_prioritized:
            return Drawn(columns, None, lambda _: None)
        info = batch.info
        scaled = info.table_size * info.probability
        weights = scaled**-IMPORTANCE_EXPONENT

        def update(priorities: NDArray[np.float64] | None) -> None:
            assert priorities is not None
            keys = info.key.tolist()
            updates = dict(zip(keys, priorities.tolist(), strict=True))
            self._client.mutate_priorities("table", updates=updates)

        return Drawn(columns, weights / weights.max(), update)

    def _dataset(self) -> Any:
        import reverb
        import tensorflow as tf

        samples = reverb.TrajectoryDataset.from_table_signature(
            server_address=self._address,
            table="table",
            max_in_flight_samples_per_worker=2 * self._table.batch_size,
        )
        batches = samples.batch(self._table.batch_size, drop_remainder=True)
        return batches.prefetch(tf.data.AUTOTUNE)

    def close(self) -> None:
        self._batches = None
        self._writer.close()
        self._pipe.send("end")
        self._server.join()


def _serve(pipe: Connection, table: Table) -> None:
    import reverb
    import tensorflow as tf

    served = reverb.Table(
        name="table",
        sampler=reverb.selectors.Prioritized(PRIORITY_EXPONENT)
        if table.is_prioritized
        else reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=table.num_items,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={
            name: tf.TensorSpec((1, *shape), dtype)
            for name, (dtype, shape) in table.columns.items()
        },
    )
    server = reverb.Server([served])
    pipe.send(server.port)
    pipe.recv()
    server.stop()
