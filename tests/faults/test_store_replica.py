"""A store's host is lost, and another host continues with the replica."""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
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


def replicate(address: str, folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tengen", "store", "replicate", address, str(folder)],
        stdout=subprocess.DEVNULL,
    )


class Watch:
    """Computes from the store's reports which values the replica contains."""

    def __init__(self, store: Store, log: Path) -> None:
        self._store = store
        self._log = log
        self._noted: list[tuple[float, int]] = []
        self.kept = -1
        self.has_copy = False

    def look(self) -> None:
        self._noted.append((time.time(), promised(self._log)))
        for replica in self._store.describe()["replicas"]:
            if replica["behind_s"] is None:
                continue
            self.has_copy = True
            has_until = time.time() - replica["behind_s"]
            kept = [value for at, value in self._noted if at <= has_until]
            self.kept = max([self.kept, *kept])


def run_with_losses(
    folder: Path, durability: str, num_losses: int, count: int, seed: int
) -> None:
    """Loses hosts of a queue at random instants; checks that no item is lost."""
    rng = random.Random(seed)
    # tmp_path is too long for a socket's path.
    hosts = Path(tempfile.mkdtemp(prefix="tengen-replica-"))
    logs = {name: folder / name for name in ("write", *USERS)}
    processes: dict[str, subprocess.Popen] = {}
    kept = -1
    num_kills = 0
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, hosts, ignore_errors=True)
        stack.callback(lambda: [one.kill() for one in processes.values()])
        end = time.monotonic() + 600.0
        for loss in range(num_losses + 1):
            host, copy = hosts / f"{loss}", folder / f"replica-{loss}"
            host.mkdir()
            if loss > 0:
                (folder / f"replica-{loss - 1}").rename(host / "disk")
            directory = host / "store"
            processes["serve"] = start(
                f"serve-{durability}", str(directory), folder / "none", count
            )
            address = (host / "address").read_text()
            store = Store.connect(directory)
            with store.writer("writer", "queue") as writer:
                assert writer.next_sequence > kept
            # The writer inserts the values again that the replica lacks.
            logs["write"].unlink(missing_ok=True)
            watch = Watch(store, logs["write"])
            for name, log in logs.items():
                processes[name] = start(name.split("-")[0], str(directory), log, count)
            if loss == num_losses:
                break
            processes["replica"] = replicate(address, copy)
            while not watch.has_copy:
                assert time.monotonic() < end
                watch.look()
                time.sleep(0.01)
            for _ in range(2):
                processes["replica"].kill()
                processes["replica"].wait()
                num_kills += 1
                processes["replica"] = replicate(address, copy)
                until = time.monotonic() + rng.uniform(0.3, 0.8)
                while time.monotonic() < until:
                    watch.look()
                    time.sleep(0.01)
            kept = max(kept, watch.kept)
            store.close()
            for process in processes.values():
                process.send_signal(signal.SIGKILL)
            for process in processes.values():
                process.wait()
            processes.clear()
            shutil.rmtree(host)
            for name in USERS:
                cut_torn_record(logs[name], RECORD_BYTES)
        assert num_kills == 2 * num_losses
        assert kept > 0
        used = all_values(store, processes, logs, count, end)
        store.close()
    assert used == set(range(count))


@pytest.mark.parametrize("durability", ["async", "sync"])
def test_a_store_goes_on_with_what_its_replica_has(tmp_path, durability):
    run_with_losses(tmp_path, durability, num_losses=2, count=20000, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_stores_go_on_with_what_replicas_have_many_times(tmp_path, seed):
    run_with_losses(tmp_path, "async", num_losses=20, count=200000, seed=seed)
