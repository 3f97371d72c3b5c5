"""Measures one store on one workload, in its own process and environment.

Prints one line of JSON per result: sampling, inserting, and the cost of copying the
same number of bytes with numpy in this process.
"""

from __future__ import annotations

import argparse
import importlib
import json
from itertools import cycle

import numpy as np
from measure import measure
from peer import Drawn, Peer
from workloads import WORKLOADS, Workload

# Fraction of the capacity to insert first: above 1, so that removal has started.
_FILL = 1.25
_BLOCK_BYTES = 8 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="module:class")
    parser.add_argument("workload", choices=list(WORKLOADS))
    parser.add_argument("--cpu-seconds", type=float, default=3.0)
    args = parser.parse_args()
    workload = WORKLOADS[args.workload]
    report("copy", copies(workload, args.cpu_seconds))
    module, _, name = args.store.partition(":")
    peer: Peer = getattr(importlib.import_module(module), name)(workload.table)
    fill(peer, workload)
    report("sample", samples(peer, workload, args.cpu_seconds))
    for size in workload.insert_sizes:
        report(f"insert {size}", inserts(peer, workload, size, args.cpu_seconds))
    peer.close()


def report(figure: str, row: dict[str, float]) -> None:
    print(json.dumps({"figure": figure, **row}), flush=True)


def fill(peer: Peer, workload: Workload) -> None:
    size = max(1, _BLOCK_BYTES // workload.item_bytes)
    block = workload.items(size)
    for _ in range(0, int(workload.num_items * _FILL), size):
        peer.insert({"data": block})
    peer.flush()


def samples(peer: Peer, workload: Workload, cpu_seconds: float) -> dict[str, float]:
    size = workload.batch_size
    rows = cycle(np.random.default_rng(0).random((64, size)) + 1e-3)

    def step() -> Drawn:
        drawn = peer.sample()
        drawn.update(next(rows) if workload.is_prioritized else None)
        return drawn

    data = step().columns["data"]
    assert data.shape == (size, workload.item_bytes)
    return measure(step, size, cpu_seconds=cpu_seconds)


def inserts(
    peer: Peer, workload: Workload, size: int, cpu_seconds: float
) -> dict[str, float]:
    source = workload.items(max(size, min(64, _BLOCK_BYTES // workload.item_bytes)))
    blocks = cycle(source.reshape(-1, size, workload.item_bytes))
    return measure(
        lambda: peer.insert({"data": next(blocks)}),
        size,
        cpu_seconds=cpu_seconds,
        finish=peer.flush,
    )


def copies(workload: Workload, cpu_seconds: float) -> dict[str, float]:
    """Measures numpy's copy of random items of a table-sized array to one batch."""
    size, count = workload.batch_size, workload.num_items
    source = np.ones((count, workload.item_bytes), np.uint8)
    batch = np.empty((size, workload.item_bytes), np.uint8)
    rng = np.random.default_rng(0)

    def step() -> None:
        keys = rng.integers(0, count, size)
        np.take(source, keys, axis=0, out=batch, mode="clip")

    return measure(step, size, cpu_seconds=cpu_seconds)


if __name__ == "__main__":
    main()
