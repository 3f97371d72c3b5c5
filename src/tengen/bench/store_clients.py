"""The processes of the store's benchmark: server, writers, samplers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tengen.bench.store_workloads import Workload
from tengen.store import StepWriter, Store

__all__ = ["Client", "run_copies", "run_sampler", "run_server", "run_writer"]

_FILL_BYTES = 8 << 20


@dataclass(frozen=True)
class Client:
    """What a writer or sampler is to do.

    Attributes:
        workload: Whose table.
        address: The store's, as for `Store.connect`.
        warm_s: Seconds before the measurement.
        seconds: Of the measurement.
        rate: Items a second; None: as many as go.
        batch_size: Items a command.
        num_ahead: Batches drawn ahead.
    """

    workload: Workload
    address: str
    warm_s: float
    seconds: float
    rate: float | None
    batch_size: int
    num_ahead: int = 2


def run_server(
    pipe: Connection,
    workloads: list[Workload],
    capacities: list[int],
    where: dict[str, Any],
) -> None:
    """Makes the store, fills it, tells its address, and its CPU seconds until the end.

    Args:
        pipe: To the benchmark.
        workloads: Their tables.
        capacities: Items of each.
        where: The store's budgets and folders, or address.
    """
    tables = [
        workload.table(capacity)
        for workload, capacity in zip(workloads, capacities, strict=True)
    ]
    with Store(tables, **where) as store:
        for workload, capacity in zip(workloads, capacities, strict=True):
            _fill(store, workload, capacity)
        pipe.send(store.address)
        while pipe.recv() == "cpu":
            pipe.send(time.process_time())


def run_writer(pipe: Connection, client: Client) -> None:
    """Inserts items, ``batch_size`` a command."""
    size = client.batch_size
    store = Store.connect(client.address)
    with _open_writer(store, "writer", client.workload) as writer:
        step = _inserts(writer, client.workload, size)
        pipe.send(_measure(client, step, writer.flush))


def run_sampler(pipe: Connection, client: Client) -> None:
    """Draws batches, looks at each, and sends new priorities where they are used."""
    store = Store.connect(client.address)
    table = store.table(client.workload.name)
    sampler = table.sampler(client.batch_size, num_ahead=client.num_ahead)
    rng = np.random.default_rng(0)
    priorities = rng.random((64, client.batch_size))
    count = 0

    def step() -> None:
        nonlocal count
        batch = sampler.sample()
        count += 1
        batch.ack(priorities[count % 64] if client.workload.is_prioritized else None)

    pipe.send(_measure(client, step, lambda: None))


def run_copies(pipe: Connection, client: Client) -> None:
    """Copies random items of an array into one batch: what memory alone allows."""
    item_bytes, size = client.workload.item_bytes, client.batch_size
    num_items = max(2 * size, min(client.workload.entries, (2 << 30) // item_bytes))
    source = np.ones((num_items, item_bytes), np.uint8)
    batch = np.empty((size, item_bytes), np.uint8)
    rng = np.random.default_rng(0)

    def step() -> None:
        keys = rng.integers(0, num_items, size)
        np.take(source, keys, axis=0, out=batch, mode="clip")

    pipe.send(_measure(client, step, lambda: None))


def _open_writer(store: Store, role: str, workload: Workload) -> StepWriter:
    return store.writer(
        f"{role}-{workload.name}", workload.name, max_item_steps=workload.depth
    )


def _inserts(writer: StepWriter, workload: Workload, size: int) -> Callable[[], None]:
    """Returns what inserts ``size`` items: each ends at one of as many new steps."""
    name, depth = workload.name, workload.depth

    columns: dict[str, Any] = {
        "data": np.zeros((size, workload.stored_bytes - 8), np.uint8),
        "number": np.arange(size),
    }
    is_first = np.zeros(size, bool) if depth > 1 else None
    if depth > 1:
        frame = {name: column[0] for name, column in columns.items()}
        for step in range(depth - 1):
            writer.append(frame, is_first=step == 0)

    def insert() -> None:
        writer.append(columns, is_first=is_first)
        if size == 1:
            writer.insert(name, depth)
        else:
            writer.insert_each(name, depth)

    return insert


def _fill(store: Store, workload: Workload, capacity: int) -> None:
    size = max(1, min(capacity, _FILL_BYTES // workload.stored_bytes))
    with _open_writer(store, "filler", workload) as writer:
        insert = _inserts(writer, workload, size)
        for _ in range(0, capacity, size):
            insert()


def _measure(client: Client, step: Any, finish: Any) -> dict[str, Any]:
    """Runs steps, paced or not; returns counts, CPU seconds and latencies in ms."""
    size = client.batch_size
    begin = time.perf_counter()
    while time.perf_counter() < begin + client.warm_s:
        step()
        if client.rate is not None:
            time.sleep(size / client.rate)
    waits: list[float] = []
    num_items = 0
    start, start_cpu = time.perf_counter(), time.process_time()
    while (now := time.perf_counter()) < start + client.seconds:
        if client.rate is not None:
            due = start + num_items / client.rate
            if due > now:
                time.sleep(due - now)
                now = time.perf_counter()
        step()
        waits.append(time.perf_counter() - now)
        num_items += size
    finish()
    seconds = time.perf_counter() - start
    return {
        "items": num_items,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - start_cpu,
        "p50_ms": 1e3 * float(np.percentile(waits, 50)),
        "p99_ms": 1e3 * float(np.percentile(waits, 99)),
        "max_ms": 1e3 * max(waits),
    }
