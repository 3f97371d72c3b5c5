"""The processes of the store's benchmark: server, writers, samplers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tengen.bench.store_workloads import Workload
from tengen.store import Store

__all__ = ["Client", "run_copies", "run_sampler", "run_server", "run_writer"]

_FILL_BYTES = 8 << 20


@dataclass(frozen=True)
class Client:
    """What a writer or sampler is to do.

    Attributes:
        workload: Whose table.
        directory: The store's.
        warm_s: Seconds before the measurement.
        seconds: Of the measurement.
        rate: Items a second; None: as many as go.
        batch_size: Items a command.
    """

    workload: Workload
    directory: str
    warm_s: float
    seconds: float
    rate: float | None
    batch_size: int


def run_server(
    pipe: Connection,
    workloads: list[Workload],
    capacities: list[int],
    directory: str,
    memory_bytes: int,
) -> None:
    """Makes the store, fills it, and answers with its CPU seconds until told to end."""
    tables = [
        workload.table(capacity)
        for workload, capacity in zip(workloads, capacities, strict=True)
    ]
    with Store(tables, memory_bytes=memory_bytes, directory=directory) as store:
        for workload, capacity in zip(workloads, capacities, strict=True):
            _fill(store, workload, capacity)
        pipe.send("ready")
        while pipe.recv() == "cpu":
            pipe.send(time.process_time())


def run_writer(pipe: Connection, client: Client) -> None:
    """Inserts items, ``batch_size`` a command."""
    size = client.batch_size
    name = client.workload.name
    store = Store.connect(client.directory)
    columns = _columns(client.workload, size)
    with store.writer(f"writer-{name}", name) as writer:

        def step() -> None:
            writer.append(columns)
            if size == 1:
                writer.insert(name, 1)
            else:
                writer.insert_each(name, size)

        pipe.send(_measure(client, step, writer.flush))


def run_sampler(pipe: Connection, client: Client) -> None:
    """Draws batches, looks at each, and sends new priorities where they are used."""
    store = Store.connect(client.directory)
    table = store.table(client.workload.name)
    sampler = table.sampler(client.batch_size)
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


def _columns(workload: Workload, size: int) -> dict[str, Any]:
    data = np.zeros((size, workload.item_bytes - 8), np.uint8)
    return {"data": data, "number": np.arange(size)}


def _fill(store: Store, workload: Workload, capacity: int) -> None:
    size = max(1, min(capacity, _FILL_BYTES // workload.item_bytes))
    columns = _columns(workload, size)
    with store.writer(f"filler-{workload.name}", workload.name) as writer:
        for _ in range(0, capacity, size):
            writer.append(columns)
            writer.insert_each(workload.name, size)


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
