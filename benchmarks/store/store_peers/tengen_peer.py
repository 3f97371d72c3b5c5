"""tengen's own store: across processes, or in one process."""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from peer import IMPORTANCE_EXPONENT, PRIORITY_EXPONENT, Columns, Drawn, Table

from tengen.store import Column, Selector, Store, StoreConfig, TableConfig

_SPAWN = multiprocessing.get_context("spawn")


class InProcess:
    """Store, writer and sampler in this process."""

    def __init__(self, table: Table) -> None:
        self._open(Store(_config(table)), table)

    def _open(self, store: Store, table: Table) -> None:
        self._store = store
        self._is_prioritized = table.is_prioritized
        self._writer = store.writer("writer", "table")
        self._sampler = store.table("table").sampler(table.batch_size)

    def insert(self, columns: Columns) -> None:
        if self._writer.append(columns) == 1:
            self._writer.insert("table", 1)
        else:
            self._writer.insert_each("table")

    def flush(self) -> None:
        self._writer.flush()

    def sample(self) -> Drawn:
        batch = self._sampler.sample()
        weights = None
        if self._is_prioritized:
            weights = batch.importance_weights(IMPORTANCE_EXPONENT)
        return Drawn(batch.columns, weights, batch.ack)

    def close(self) -> None:
        self._writer.close()
        self._store.close()


class AcrossProcesses(InProcess):
    """The store in its own process; writer and sampler are its clients."""

    def __init__(self, table: Table) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="store-peers-", dir="/dev/shm"))
        directory = str(self._folder / "store")
        self._pipe, theirs = _SPAWN.Pipe()
        self._server = _SPAWN.Process(
            target=_serve, args=(theirs, table, directory), daemon=True
        )
        self._server.start()
        theirs.close()
        self._pipe.recv()
        self._open(Store.connect(directory), table)

    def close(self) -> None:
        super().close()
        self._pipe.send("end")
        self._server.join()
        shutil.rmtree(self._folder)


def _config(table: Table, directory: str | None = None) -> StoreConfig:
    one = TableConfig(
        name="table",
        columns={
            name: Column(dtype=dtype, shape=shape)
            for name, (dtype, shape) in table.columns.items()
        },
        sampler=Selector(kind="prioritized", exponent=PRIORITY_EXPONENT)
        if table.is_prioritized
        else Selector(),
        max_items=table.num_items,
    )
    # A quarter more than the table, for unfinished chunks and batches on loan.
    memory_bytes = table.num_bytes * 5 // 4 + (64 << 20)
    return StoreConfig.of([one], memory_bytes=memory_bytes, directory=directory)


def _serve(pipe: Connection, table: Table, directory: str) -> None:
    with Store(_config(table, directory)):
        pipe.send("ready")
        pipe.recv()
