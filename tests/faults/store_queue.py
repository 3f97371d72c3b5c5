"""Helpers that start the processes of a queue of numbers and read their logs."""

import os
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tengen.store import Store

CLIENT = Path(__file__).with_name("store_client.py")
BATCH = 3
# A record of a user's log: a byte for before or after the acknowledgement, and a batch.
RECORD_BYTES = 1 + 8 * BATCH
USERS = ("use-0", "use-1")


def start(action: str, address: str, log: Path, count: int) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, str(CLIENT), action, address, str(log), str(count)],
        stdout=subprocess.PIPE if action.startswith("serve") else None,
    )
    if action.startswith("serve"):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    return process


def read_log(log: Path) -> tuple[Counter, Counter]:
    """Returns counts of values logged before, and after, their acknowledgement."""
    announced: Counter = Counter()
    sent: Counter = Counter()
    data = log.read_bytes() if log.exists() else b""
    for at in range(0, len(data) - RECORD_BYTES + 1, RECORD_BYTES):
        into = announced if data[at : at + 1] == b"?" else sent
        into.update(struct.unpack_from(f"<{BATCH}q", data, at + 1))
    return announced, sent


def cut_torn_record(log: Path, num_bytes: int) -> None:
    """Removes a record that a kill truncated, so that later records stay aligned."""
    size = log.stat().st_size if log.exists() else 0
    if size % num_bytes:
        os.truncate(log, size - size % num_bytes)


def promised(log: Path) -> int:
    """Returns the last value that the writer flushed, or -1."""
    cut_torn_record(log, 8)
    data = log.read_bytes() if log.exists() else b""
    return struct.unpack("<q", data[-8:])[0] if data else -1


def all_values(
    store: Store,
    processes: Mapping[str, subprocess.Popen],
    logs: Mapping[str, Path],
    count: int,
    end: float,
) -> set[int]:
    """Waits until nearly all values are used, and kills the clients.

    Returns:
        The values that users sampled, and the values that are left in the store.
    """
    used: set[int] = set()
    while len(used) < count - BATCH + 1 and time.monotonic() < end:
        time.sleep(0.05)
        used = set().union(*(read_log(logs[name])[1] for name in USERS))
    # The users may have caught up before the writer inserted the last values.
    assert processes["write"].wait(max(end - time.monotonic(), 1.0)) == 0
    for name in logs:
        processes[name].kill()
        processes[name].wait()
    used = set().union(*(read_log(logs[name])[0] for name in USERS))
    queue = store.table("queue")
    with queue.sampler(1) as sampler:
        for _ in range(queue.describe()["num_items"]):
            batch = sampler.sample(timeout_s=300.0)
            used.update(batch.columns["value"].tolist())
            batch.ack()
    return used
