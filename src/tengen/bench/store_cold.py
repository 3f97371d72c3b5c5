"""The experience store with memory for a tenth of its steps, compared with its disk."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tengen.bench.disk_reads import DiskReads, run_reads
from tengen.bench.store_clients import Client, latencies, run_sampler, run_writer
from tengen.bench.store_processes import ServerProcess, together
from tengen.bench.store_workloads import Workload

__all__ = ["BASELINE", "run_cold"]

_WARM_S = 1.0
# As many rows under way as the store has at most, and twice as many; must match
# kNumThreads of core/store/disk/disk_tier.cc.
_DEPTHS = (32, 64)
# Enough batches to keep the disk busy while one of them is used.
_NUM_AHEAD = 4
_NUM_TURNS = 5

BASELINE = (
    "random rows of the store's own file, of row_bytes as the store reads them, by 32 "
    "and 64 processes at once that do nothing else; past the system's cache as the "
    "store reads (past_cache), into huge pages as the store's; share_of_disk is "
    "read_gb/s, what came from the disk for the store, over the better of the two"
)
"""What the store is compared with."""


@dataclass(frozen=True)
class _Turn:
    """One measurement of the disk alone, by depth, and of the store on it."""

    disk_rates: dict[int, float]  # bytes/s
    is_past_cache: bool
    sampled: dict[str, Any]
    cpu_s: float
    rows_per_item: float

    def read_rate(self, row_bytes: int) -> float:
        """Bytes a second that the store read from the disk."""
        items_per_s = self.sampled["items"] / self.sampled["seconds"]
        return float(items_per_s * self.rows_per_item * row_bytes)


def run_cold(
    workload: Workload, over: str, num_bytes: int, seconds: float, disk: Path
) -> dict[str, Any]:
    """Returns the row of a workload's results.

    ``gb/s`` is what the sampler received, ``rows/sample`` is how many rows came from
    the disk for each item, and ``read_gb/s`` the bytes of these rows. ``share_of_disk``
    is over all turns, beside the least and the greatest of one turn. All of
    these but ``gb/s`` are None where the system counts no reads of a disk, as on a
    memory file system. Latencies are over all turns.

    Args:
        workload: Whose table.
        over: How clients reach the store, ``memory`` or ``tcp``.
        num_bytes: Bytes of all steps, at most; memory holds a tenth.
        seconds: Seconds of a measurement.
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
        # In turns, because a disk's speed changes from minute to minute.
        turns = [_turn(server, client) for _ in range(_NUM_TURNS)]
        writer = dataclasses.replace(client, batch_size=1)
        [written], _ = server.measure([(run_writer, writer)])
        capacity = server.capacities[0]
    num_seconds = sum(turn.sampled["seconds"] for turn in turns)
    num_items = sum(turn.sampled["items"] for turn in turns)
    of_calls = latencies([turn.sampled for turn in turns])
    return {
        "workload": workload.name,
        "batch": workload.batch_size,
        "items": capacity,
        "past_cache": turns[0].is_past_cache,
        "samples/s": num_items / num_seconds,
        "gb/s": num_items * workload.stored_bytes / num_seconds / 1e9,
        **_beside_disk(turns, workload.row_bytes),
        "cpu_s/s": sum(turn.cpu_s for turn in turns) / num_seconds,
        "p50_ms": of_calls["p50_ms"],
        "p99_ms": of_calls["p99_ms"],
        "insert_gb/s": written["items"]
        * workload.stored_bytes
        / written["seconds"]
        / 1e9,
    }


def _turn(server: ServerProcess, client: Client) -> _Turn:
    row_bytes = client.workload.row_bytes
    (path,) = server.row_files
    rates = {}
    for depth in _DEPTHS:
        reads = DiskReads(path, row_bytes, depth, _WARM_S, client.seconds)
        [read] = together([(run_reads, reads)])
        rates[depth] = read["bytes/s"]
    before = server.disk_bytes_read()
    [sampled], cpu_s = server.measure([(run_sampler, client)])
    num_rows = (server.disk_bytes_read() - before) / row_bytes
    # Items drawn in the warm-up count too, and those drawn ahead when the turn ended.
    num_drawn = sampled["all_items"] + client.num_ahead * client.batch_size
    return _Turn(rates, read["is_past_cache"], sampled, cpu_s, num_rows / num_drawn)


def _beside_disk(turns: list[_Turn], row_bytes: int) -> dict[str, Any]:
    """Returns the disk's rates, and the store's share of the best one."""
    rates = {
        depth: fmean(turn.disk_rates[depth] for turn in turns) for depth in _DEPTHS
    }
    best = max(_DEPTHS, key=lambda depth: rates[depth])
    row: dict[str, Any] = {
        "row_bytes": row_bytes,
        **{f"disk_{depth}_gb/s": rate / 1e9 for depth, rate in rates.items()},
    }
    names = ("rows/sample", "read_gb/s", "share_of_disk", "least_share", "most_share")
    if not any(turn.rows_per_item for turn in turns):
        return row | dict.fromkeys(names)
    read_rate = fmean(turn.read_rate(row_bytes) for turn in turns)
    shares = [turn.read_rate(row_bytes) / turn.disk_rates[best] for turn in turns]
    values = (
        fmean(turn.rows_per_item for turn in turns),
        read_rate / 1e9,
        read_rate / rates[best],
        min(shares),
        max(shares),
    )
    return row | dict(zip(names, values, strict=True))
