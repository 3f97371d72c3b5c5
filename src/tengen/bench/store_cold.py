"""The experience store with memory for a tenth of its steps, beside its disk alone."""

from __future__ import annotations

import dataclasses
import mmap
import os
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tengen.bench.store_clients import Client, run_sampler, run_writer
from tengen.bench.store_processes import ServerProcess, together
from tengen.bench.store_workloads import Workload

__all__ = ["run_cold"]

_WARM_S = 1.0
_PAGE = 4096
_DEPTHS = (8, 16)
# So many that the disk has enough to do while a batch is used.
_NUM_AHEAD = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Reader(Client):
    """Reads rows of a file at random: what the disk alone allows."""

    path: str
    row_bytes: int
    depth: int


def run_cold(
    workload: Workload, over: str, num_bytes: int, seconds: float, disk: Path
) -> dict[str, Any]:
    """Returns the row of a workload.

    Args:
        workload: Whose table.
        over: How clients reach the store, ``memory`` or ``tcp``.
        num_bytes: Of all steps, at most; memory holds a tenth.
        seconds: A figure.
        disk: A folder on the disk.
    """
    with ServerProcess([workload], over, num_bytes, disk) as server:
        client = Client(
            workload,
            server.address,
            _WARM_S,
            seconds,
            None,
            workload.batch_size,
            num_ahead=_NUM_AHEAD,
        )
        row_bytes = -(-workload.stored_bytes // _PAGE) * _PAGE
        (path,) = server.row_files
        reads = dict.fromkeys(_DEPTHS, 0.0)
        sampled, sample_cpu = {"items": 0, "seconds": 0.0}, 0.0
        # In turns, as what a disk gives changes from minute to minute.
        for _ in range(3):
            for depth in _DEPTHS:
                reader = _Reader(
                    **{
                        one.name: getattr(client, one.name)
                        for one in dataclasses.fields(client)
                    },
                    path=path,
                    row_bytes=row_bytes,
                    depth=depth,
                )
                read = together([(_run_reads, reader)])[0]
                reads[depth] += read["items"] * row_bytes / read["seconds"] / 3
            results, cpu = server.measure([(run_sampler, client)])
            sample_cpu += cpu
            for name in ("items", "seconds"):
                sampled[name] += results[0][name]
        writer = dataclasses.replace(client, batch_size=1)
        written, _ = server.measure([(run_writer, writer)])
    rate = sampled["items"] * workload.stored_bytes / sampled["seconds"]
    return {
        "workload": workload.name,
        "stored_bytes": workload.stored_bytes,
        "batch": workload.batch_size,
        "items": server.capacities[0],
        **{f"disk_{depth}_gb/s": rate_ / 1e9 for depth, rate_ in reads.items()},
        "samples/s": sampled["items"] / sampled["seconds"],
        "gb/s": rate / 1e9,
        "share_of_disk": rate / max(reads.values()),
        "cpu_s/s": sample_cpu / sampled["seconds"],
        "p50_ms": results[0]["p50_ms"],
        "p99_ms": results[0]["p99_ms"],
        "insert_gb/s": written[0]["items"]
        * workload.stored_bytes
        / written[0]["seconds"]
        / 1e9,
    }


def _run_reads(pipe: Connection, client: _Reader) -> None:
    """Reads random rows past the system's cache, ``depth`` at once."""
    direct = getattr(os, "O_DIRECT", 0)
    file = os.open(client.path, os.O_RDONLY | direct)
    num_rows = os.fstat(file).st_size // client.row_bytes
    begin = time.perf_counter() + client.warm_s
    end = begin + client.seconds
    counts = [0] * client.depth

    def read(number: int) -> None:
        rng = np.random.default_rng(number)
        buffer = mmap.mmap(-1, client.row_bytes)
        while (now := time.perf_counter()) < end:
            row = int(rng.integers(num_rows))
            os.preadv(file, [buffer], row * client.row_bytes)
            counts[number] += now >= begin

    threads = [
        threading.Thread(target=read, args=(number,)) for number in range(client.depth)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(file)
    pipe.send({"items": sum(counts), "seconds": client.seconds})
