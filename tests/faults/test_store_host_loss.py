"""A store loses no durable item if its host is lost at a random instant."""

import contextlib
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tengen.store import Store
from tests.faults.store_queue import (
    RECORD_BYTES,
    USERS,
    all_values,
    cut_torn_record,
    promised,
    start,
)

LOGGED_BYTES = 4096
"""The size of a log with dozens of items; an empty log has 32 bytes."""


def lose_host(processes: dict, directory: Path) -> None:
    """Kills all processes and deletes the store's shared memory."""
    for process in processes.values():
        process.send_signal(signal.SIGKILL)
    for process in processes.values():
        process.wait()
    shutil.rmtree(directory)


def num_logged_bytes(directory: Path) -> int:
    """Returns the size of the log on disk, which survives the host."""
    logs = directory.with_name("disk").glob("log-*")
    return sum(log.stat().st_size for log in logs)


def run_with_losses(
    folder: Path, durability: str, num_losses: int, count: int, seed: int
) -> None:
    """Loses the host of a queue at random instants; checks that no item is lost."""
    rng = random.Random(seed)
    # tmp_path is too long for a socket's path.
    directory = Path(tempfile.mkdtemp(prefix="tengen-hosts-")) / "store"
    logs = {name: folder / name for name in ("write", *USERS)}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory.parent, ignore_errors=True)
        processes: dict = {}
        end = time.monotonic() + 600.0
        stack.callback(lambda: [one.kill() for one in processes.values()])
        for loss in range(num_losses + 1):
            processes["serve"] = start(
                f"serve-{durability}", str(directory), folder / "none", count
            )
            with (
                Store.connect(directory) as store,
                store.writer("writer", "queue") as w,
            ):
                if durability == "sync":
                    assert w.next_sequence > promised(logs["write"])
                assert w.next_sequence > 0 or loss == 0
            for name, log in logs.items():
                processes[name] = start(name.split("-")[0], str(directory), log, count)
            if loss < num_losses:
                begun = promised(logs["write"])
                writer = processes["write"]
                while promised(logs["write"]) <= begun + 100 and writer.poll() is None:
                    assert time.monotonic() < end
                    time.sleep(0.01)
                # Before the first loss, waits until some items are durable.
                while loss == 0 and num_logged_bytes(directory) < LOGGED_BYTES:
                    assert time.monotonic() < end
                    time.sleep(0.01)
                time.sleep(rng.uniform(0.1, 0.3))
                lose_host(processes, directory)
                for name in USERS:
                    cut_torn_record(logs[name], RECORD_BYTES)
        with Store.connect(directory) as store:
            used = all_values(store, processes, logs, count, end)
    assert used == set(range(count))


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_nothing_that_was_promised_is_lost_with_the_host(tmp_path, durability):
    run_with_losses(tmp_path, durability, num_losses=3, count=12000, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_nothing_that_was_promised_is_lost_with_many_hosts(tmp_path, seed):
    run_with_losses(tmp_path, "sync", num_losses=40, count=200000, seed=seed)
