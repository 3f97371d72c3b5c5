"""The processes of the store benchmark: server, writers and samplers.

A sampler reads every byte of its batches: it sums the words of each array. The
CPU-seconds of reading are reported separately, for copies as well. Latencies exclude
the time of reading.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.cli.bench.store_workloads import Workload
from tengen.store import StepWriter, Store, StoreConfig

_FILL_BYTES = 8 << 20


@dataclass(frozen=True)
class Client:
    """The settings of a writer or sampler.

    Attributes:
        workload: The workload whose table the client uses.
        address: The store's address, as for `Store.connect`.
        warm_s: Duration of the warm-up.
        seconds: Duration of the measurement.
        rate: Items per second, for which each call has a fixed due time that does not
            depend on earlier delays. None: as fast as possible.
        batch_size: Items per call.
        num_ahead: Number of batches that a sampler requests in advance.
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
    """Creates and fills a store; sends its address, then CPU-seconds on request.

    Args:
        pipe: The connection to the benchmark.
        workloads: The workloads whose tables the store has.
        capacities: Capacity of each table, in items.
        where: Fields of `StoreConfig`: budgets, folders and the listening address.
    """
    tables = [
        workload.table(capacity)
        for workload, capacity in zip(workloads, capacities, strict=True)
    ]
    with Store(StoreConfig.of(tables, **where)) as store:
        for workload, capacity in zip(workloads, capacities, strict=True):
            _fill(store, workload, capacity)
        pipe.send(store.address)
        while pipe.recv() == "used":
            pipe.send(time.process_time())


def latencies(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns the median, 99th percentile and maximum latency of calls, in ms.

    The latency of a paced call is measured from its due time and so includes the wait
    for earlier calls; that of any other call is measured from its start.
    ``service_p99_ms`` is always measured from a call's start.
    """
    waits = np.concatenate([np.frombuffer(one["waits_s"]) for one in results])
    services = np.concatenate([np.frombuffer(one["services_s"]) for one in results])
    return {
        "p50_ms": 1e3 * float(np.percentile(waits, 50)),
        "p99_ms": 1e3 * float(np.percentile(waits, 99)),
        "max_ms": 1e3 * float(waits.max()),
        "service_p99_ms": 1e3 * float(np.percentile(services, 99)),
    }


def run_writer(pipe: Connection, client: Client) -> None:
    """Inserts items, ``batch_size`` per call; sends the results."""
    size = client.batch_size
    store = Store.connect(client.address)
    with _open_writer(store, "writer", client.workload) as writer:
        step = _inserts(writer, client.workload, size)
        pipe.send(_measure(client, step, _Reading(), writer.flush))


def run_sampler(pipe: Connection, client: Client) -> None:
    """Samples and reads batches, and updates priorities if the workload has them."""
    store = Store.connect(client.address)
    table = store.table(client.workload.name)
    sampler = table.sampler(client.batch_size, num_ahead=client.num_ahead)
    rng = np.random.default_rng(0)
    priorities = rng.random((64, client.batch_size))
    count = 0
    reading = _Reading()

    def step() -> None:
        nonlocal count
        batch = sampler.sample()
        reading.read(batch.columns.values())
        count += 1
        batch.ack(priorities[count % 64] if client.workload.is_prioritized else None)

    pipe.send(_measure(client, step, reading))


def run_copies(pipe: Connection, client: Client) -> None:
    """Copies random items to a batch and reads it: an upper bound for samplers."""
    item_bytes, size = client.workload.item_bytes, client.batch_size
    num_items = max(2 * size, min(client.workload.entries, (2 << 30) // item_bytes))
    source = np.ones((num_items, item_bytes), np.uint8)
    batch = np.empty((size, item_bytes), np.uint8)
    rng = np.random.default_rng(0)
    reading = _Reading()

    def step() -> None:
        keys = rng.integers(0, num_items, size)
        np.take(source, keys, axis=0, out=batch, mode="clip")
        reading.read([batch])

    pipe.send(_measure(client, step, reading))


class _Reading:
    """Reads a client's batches, and adds up the time that reading takes."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self.seconds = 0.0
        # Only this thread's time: other threads may be gathering the next batch.
        self.cpu_seconds = 0.0
        self.checksum = 0

    def read(self, arrays: Iterable[NDArray[Any]]) -> None:
        """Reads all bytes of contiguous arrays, eight bytes at a time."""
        start, start_cpu = time.perf_counter(), time.thread_time()
        for one in arrays:
            content = one.reshape(-1).view(np.uint8)
            num_whole = content.size // 8 * 8
            self.checksum += int(content[:num_whole].view(np.uint64).sum())
            self.checksum += int(content[num_whole:].sum())
            self.num_bytes += content.size
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.thread_time() - start_cpu


def _open_writer(store: Store, role: str, workload: Workload) -> StepWriter:
    return store.writer(
        f"{role}-{workload.name}", workload.name, max_item_steps=workload.num_steps
    )


def _inserts(writer: StepWriter, workload: Workload, size: int) -> Callable[[], None]:
    """Returns a function that inserts ``size`` items, one per ``period`` steps."""
    name, num_steps, period = workload.name, workload.num_steps, workload.period

    columns: dict[str, Any] = {
        "data": np.zeros((size * period, workload.step_bytes - 8), np.uint8),
        "number": np.arange(size * period),
    }
    step = {name: column[0] for name, column in columns.items()}
    for _ in range(num_steps - period):
        writer.append(step)

    def insert() -> None:
        writer.append(columns)
        if size == 1:
            writer.insert(name, num_steps)
        else:
            writer.insert_each(name, num_steps)

    def insert_apart() -> None:
        for first in range(0, size * period, period):
            part = slice(first, first + period)
            writer.append({name: column[part] for name, column in columns.items()})
            writer.insert(name, num_steps)

    return insert if period == 1 else insert_apart


def _fill(store: Store, workload: Workload, capacity: int) -> None:
    size = max(1, min(capacity, _FILL_BYTES // workload.stored_bytes))
    with _open_writer(store, "filler", workload) as writer:
        insert = _inserts(writer, workload, size)
        for _ in range(0, capacity, size):
            insert()


def _measure(
    client: Client,
    step: Callable[[], None],
    reading: _Reading,
    finish: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Repeats ``step`` for the warm-up and the measurement; returns the results.

    Returns:
        ``items``, ``seconds`` and ``cpu_seconds`` of the measurement; ``read_bytes``
        and ``read_cpu_seconds`` of reading alone; ``all_items``, which includes the
        warm-up; and, for `latencies`, ``waits_s`` and ``services_s``: the bytes of one
        float64 per call.
    """
    warm = _repeat(client, client.warm_s, step, reading)
    num_bytes, read_cpu = reading.num_bytes, reading.cpu_seconds
    start, start_cpu = time.perf_counter(), time.process_time()
    calls = _repeat(client, client.seconds, step, reading)
    finish()
    return {
        "items": calls.num_items,
        "all_items": warm.num_items + calls.num_items,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - start_cpu,
        "read_bytes": reading.num_bytes - num_bytes,
        "read_cpu_seconds": reading.cpu_seconds - read_cpu,
        "waits_s": calls.waits.tobytes(),
        "services_s": calls.services.tobytes(),
    }


class _Calls:
    """The latencies in seconds of the calls in a warm-up or measurement."""

    def __init__(self) -> None:
        self.num_items = 0
        self.waits = array("d")
        self.services = array("d")


def _repeat(
    client: Client, seconds: float, step: Callable[[], None], reading: _Reading
) -> _Calls:
    """Repeats ``step`` for ``seconds``, at fixed due times if the client is paced.

    A call that was due before the end but has not started counts with its wait so far.
    """
    calls = _Calls()
    start = now = time.perf_counter()
    end = start + seconds
    interval = 0.0 if client.rate is None else client.batch_size / client.rate
    while now < end:
        due = start + len(calls.waits) * interval if interval else now
        if due >= end:
            break
        if due > now:
            time.sleep(due - now)
            now = time.perf_counter()
        read_s = reading.seconds
        step()
        made, now = now, time.perf_counter()
        read_s = reading.seconds - read_s
        calls.waits.append(now - due - read_s)
        calls.services.append(now - made - read_s)
        calls.num_items += client.batch_size
    while interval and (due := start + len(calls.waits) * interval) < end:
        calls.waits.append(now - due)
    return calls
