"""What a checkpoint of a store costs those who sample meanwhile.

    python benchmarks/store/store_checkpoint.py --disk FOLDER [--gigabytes 4] [--json]

A server holds so many bytes of 110 KB steps in memory; a client of it samples batches
of 32, and sets their priorities, without a pause. It prints how long its batches take
alone and while the first checkpoint is made; how long that and a second one take, with
a hundredth of the steps new; and how long a server takes that goes on with it after
the host was lost, and its first batch.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tengen.store import Column, Selector, Store, StoreConfig, TableConfig

STEP_BYTES = 110_000
NUM_SAMPLES = 32
ALONE_S = 3.0


def make_store(folder: Path, disk: Path, num_steps: int) -> Store:
    """Makes or goes on with the store; its memory is so large that nothing is saved."""
    table = TableConfig(
        name="replay",
        columns={"step": Column(dtype="uint8", shape=(STEP_BYTES,))},
        sampler=Selector(kind="prioritized", exponent=0.6),
        max_items=num_steps,
    )
    return Store(
        StoreConfig.of(
            [table],
            memory_bytes=num_steps * STEP_BYTES * 9 // 4,
            directory=folder,
            disk_bytes=num_steps * STEP_BYTES * 2,
            disk_directory=disk,
            durability="checkpoint",
        )
    )


def serve(folder: Path, disk: Path, num_steps: int) -> None:
    """Serves until its input ends."""
    begun = time.monotonic()
    with make_store(folder, disk, num_steps) as store:
        store.table("replay").describe()
        print(time.monotonic() - begun, flush=True)
        sys.stdin.read()


def start(
    folder: Path, disk: Path, num_steps: int
) -> tuple[subprocess.Popen[str], float]:
    """Starts a server; returns it and the seconds that its store took to make."""
    options = ("--serve", folder, "--disk", disk, "--steps", num_steps)
    process = subprocess.Popen(
        [sys.executable, __file__, *map(str, options)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, float(process.stdout.readline())


def insert(store: Store, count: int) -> None:
    """Inserts steps that are not all alike."""
    steps = np.random.default_rng(1).integers(0, 255, (16, STEP_BYTES), np.uint8)
    with store.writer("writer", "replay") as writer:
        for first in range(0, count, len(steps)):
            some = steps[: count - first]
            writer.append({"step": some})
            writer.insert_each("replay")
        writer.flush()


def sample_while(store: Store, work: Callable[[], None]) -> tuple[float, list[float]]:
    """Samples while a thread works; returns its seconds and milliseconds of a batch."""
    times: list[float] = []
    rng = np.random.default_rng(2)
    thread = threading.Thread(target=work)
    with store.table("replay").sampler(NUM_SAMPLES) as sampler:
        sampler.sample().ack()
        since = time.monotonic()
        thread.start()
        while thread.is_alive() or not times:
            begun = time.perf_counter()
            batch = sampler.sample()
            batch.ack(rng.random(NUM_SAMPLES))
            times.append((time.perf_counter() - begun) * 1e3)
    return time.monotonic() - since, times


def spread(times: list[float]) -> dict[str, float]:
    """Returns batches a second, and milliseconds of a batch."""
    return {
        "batches_per_s": 1e3 * len(times) / sum(times),
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": max(times),
    }


def measure(disk: Path, num_bytes: int) -> dict[str, Any]:
    """Runs it all, and removes what it made."""
    num_steps = num_bytes // STEP_BYTES
    folder = Path(tempfile.mkdtemp(prefix="tengen-checkpoint-", dir="/dev/shm"))
    rows = disk / folder.name
    server, _ = start(folder / "store", rows, num_steps)
    try:
        result: dict[str, Any] = {"num_bytes": num_steps * STEP_BYTES}
        with Store.connect(folder / "store") as store:
            insert(store, num_steps)
            _, times = sample_while(store, lambda: time.sleep(ALONE_S))
            result["alone"] = spread(times)
            for name in ("first", "second"):
                seconds, times = sample_while(store, store.checkpoint)
                result[name] = {"seconds": seconds, **spread(times)}
                insert(store, num_steps // 100)
        server.kill()
        server.wait()
        shutil.rmtree(folder)
        folder.mkdir()
        server, result["restore_s"] = start(folder / "store", rows, num_steps)
        with Store.connect(folder / "store") as store:
            begun = time.monotonic()
            store.table("replay").sample(NUM_SAMPLES).ack()
            result["first_batch_s"] = time.monotonic() - begun
            assert store.table("replay").describe()["num_items"] == num_steps
        return result
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(rows, ignore_errors=True)


def main() -> None:
    """Measures, or is the server."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--disk", type=Path, required=True, help="folder on a disk")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        return serve(args.serve, args.disk, args.steps)
    result = measure(args.disk, int(args.gigabytes * 1e9))
    if args.json:
        print(json.dumps(result))
        return None
    for name, value in result.items():
        shown = (
            value
            if not isinstance(value, dict)
            else ", ".join(f"{key} {number:.3g}" for key, number in value.items())
        )
        print(f"{name}: {shown}")
    return None


if __name__ == "__main__":
    main()
