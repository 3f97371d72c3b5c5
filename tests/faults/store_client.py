"""A server or client process of a store that tests kill.

``store_client.py serve|serve-cold|serve-async|serve-sync|write|use ADDRESS LOG COUNT``.
The servers except ``serve`` also use a disk and have little memory; the items of
``serve-async`` and ``serve-sync`` survive the loss of the host. A writer logs the
values that it has flushed.
"""

import dataclasses
import os
import struct
import sys
import threading
from pathlib import Path

import numpy as np

from tengen.store import Column, RateLimits, Selector, Store, StoreConfig, TableConfig

QUEUE = TableConfig(
    name="queue",
    columns={"value": Column(dtype="int64")},
    sampler=Selector(kind="fifo"),
    max_times_sampled=1,
    limits=RateLimits.queue(40),
    steps_per_chunk=8,
)
MEMORY_BYTES = 1 << 20
COLD_QUEUE = dataclasses.replace(QUEUE, limits=RateLimits.queue(1000))
COLD_MEMORY_BYTES = 12 * 4096


def serve(directory: Path, kind: str) -> None:
    """Runs the store until killed; writes its TCP address to the file ``address``."""
    is_cold = kind != "memory"
    disk = {
        "disk_bytes": 1 << 22,
        "disk_directory": directory.with_name("disk"),
        "durability": "none" if kind == "cold" else kind,
        "durability_ms": 20.0,
    }
    store = Store(
        StoreConfig.of(
            [COLD_QUEUE if is_cold else QUEUE],
            memory_bytes=COLD_MEMORY_BYTES if is_cold else MEMORY_BYTES,
            directory=directory,
            listen="127.0.0.1:0",
            **disk if is_cold else {},
        )
    )
    assert all("were being removed" in line for line in store.differences)
    directory.with_name("address").write_text(store.address)
    print("ready", flush=True)
    threading.Event().wait()


def write(store: Store, log: Path, count: int) -> None:
    """Inserts the items 0 to ``count`` - 1, except those of earlier clients."""
    with store.writer("writer", "queue") as writer, log.open("ab", 0) as file:
        for value in range(writer.next_sequence, count):
            writer.append({"value": np.int64(value)})
            writer.insert("queue", 1, sequence=value)
            if value % 50 == 0:
                writer.flush()
                os.write(file.fileno(), struct.pack("<q", value))


def use(store: Store, log: Path) -> None:
    """Samples forever; logs each batch before and after its acknowledgement."""
    with log.open("ab", buffering=0) as file:
        for batch in store.table("queue").sampler(3):
            values = batch.columns["value"].astype("<i8").tobytes()
            os.write(file.fileno(), b"?" + values)
            batch.ack()
            os.write(file.fileno(), b"!" + values)


if __name__ == "__main__":
    _, action, address, log, count = sys.argv
    if action.startswith("serve"):
        serve(Path(address), action.removeprefix("serve").removeprefix("-") or "memory")
    with Store.connect(address) as opened:
        if action == "write":
            write(opened, Path(log), int(count))
        else:
            use(opened, Path(log))
