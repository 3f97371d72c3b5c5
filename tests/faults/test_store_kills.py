"""Kills of a store's processes at random instants lose or duplicate no item."""

import contextlib
import errno
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import RunError, UsageError
from tengen.store import Column, Store, StoreConfig, StoreTimeout, TableConfig
from tengen.store.folders import StoreFolder
from tengen.store.server import HostServer
from tests.faults.store_queue import (
    BATCH,
    RECORD_BYTES,
    cut_torn_record,
    read_log,
    start,
)
from tests.refusals import refused


def run_with_kills(
    folder: Path,
    victims: Sequence[str],
    num_kills: int,
    count: int,
    seed: int,
    over: str = "memory",
    is_cold: bool = False,
) -> None:
    """Kills processes of a queue at random instants until all items are used."""
    rng = random.Random(seed)
    # tmp_path is too long for a socket's path.
    directory = Path(tempfile.mkdtemp(prefix="tengen-kills-")) / "store"
    rows = directory.with_name("disk") / "rows-0"
    logs = {name: folder / name for name in ("write", "use-0", "use-1")}

    def begin(name: str) -> subprocess.Popen:
        log = logs.get(name, folder / "none")
        address = str(directory)
        if over == "tcp" and name != "serve":
            address = directory.with_name("address").read_text()
        action = name.split("-", 1)[0]
        if is_cold and name == "serve":
            action = "serve-cold"
        return start(action, address, log, count)

    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, directory.parent, ignore_errors=True)
        processes: dict[str, subprocess.Popen] = {}
        stack.callback(lambda: [one.kill() for one in processes.values()])
        killed: Counter = Counter()
        end = time.monotonic() + 600.0
        for name in ("serve", "write"):
            processes[name] = begin(name)
        while is_cold and not rows.exists():
            # Users start only after rows reach the disk; otherwise they might keep up.
            assert time.monotonic() < end
            time.sleep(0.01)
        for name in ("use-0", "use-1"):
            processes[name] = begin(name)
        store = Store.connect(directory)
        # The last items may not fill a batch.
        while store.table("queue").describe()["num_samples"] < count - BATCH:
            assert time.monotonic() < end, store.table("queue").describe()
            time.sleep(rng.uniform(0.0, 0.03))
            name = victims[killed.total() % len(victims)]
            process = processes[name]
            if killed.total() < num_kills and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed[name] += 1
            for name, process in processes.items():
                if process.poll() in (None, 0):
                    continue
                # Only killed processes end; clients of a killed server must reconnect.
                assert process.poll() == -signal.SIGKILL, name
                if name in logs:
                    cut_torn_record(logs[name], 8 if name == "write" else RECORD_BYTES)
                processes[name] = begin(name)
        assert killed.total() == num_kills
        if is_cold:
            assert rows.stat().st_size > 0
        # The users may have caught up before the writer inserted the last values.
        assert processes["write"].wait(max(end - time.monotonic(), 1.0)) == 0
        for name in logs:
            processes[name].kill()
            processes[name].wait()
        # The store must return each unacknowledged item once.
        left: Counter = Counter()
        sampler = store.table("queue").sampler(1)
        while store.table("queue").describe()["num_items"] > 0:
            try:
                batch = sampler.sample(timeout_s=1.0)
            except StoreTimeout:
                continue  # the last items were acknowledged just before a kill
            left.update(batch.columns["value"].tolist())
            batch.ack()
            assert left.total() <= count
    announced, sent = Counter(), Counter()
    for log in (logs["use-0"], logs["use-1"]):
        more_announced, more_sent = read_log(log)
        announced += more_announced
        sent += more_sent
    assert max(sent.values()) == 1
    assert max(left.values(), default=1) == 1
    assert not sent & left
    # All other items were acknowledged by a user that was killed before its log entry.
    missing = set(range(count)) - set(sent) - set(left)
    assert missing <= set(announced) - set(sent)
    kills_of_users = killed["use-0"] + killed["use-1"]
    assert len(missing) <= kills_of_users * BATCH
    assert set(sent) | set(left) <= set(range(count))


CLIENTS = ("write", "use-0", "use-1")


@pytest.mark.parametrize("over", ["memory", "tcp"])
def test_no_item_is_lost_or_doubled_by_kills_of_clients(tmp_path, over):
    run_with_kills(tmp_path, CLIENTS, num_kills=12, count=6000, seed=1, over=over)


def test_no_item_is_lost_or_doubled_by_kills_of_the_server(tmp_path):
    run_with_kills(tmp_path, ["serve"], num_kills=5, count=20000, seed=2)


def test_no_item_is_lost_or_doubled_by_kills_of_all(tmp_path):
    run_with_kills(tmp_path, [*CLIENTS, "serve"], num_kills=12, count=20000, seed=3)


def test_no_item_is_lost_or_doubled_by_kills_of_a_server_with_a_disk(tmp_path):
    run_with_kills(tmp_path, ["serve"], 5, count=20000, seed=4, is_cold=True)


def test_no_item_is_lost_or_doubled_by_kills_of_all_around_a_disk(tmp_path):
    victims = [*CLIENTS, "serve"]
    run_with_kills(tmp_path, victims, 12, count=20000, seed=5, is_cold=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_no_item_is_lost_or_doubled_by_many_kills(tmp_path, seed):
    victims = [*CLIENTS, "serve"]
    run_with_kills(tmp_path, victims, 50, 60000, seed, is_cold=seed % 2 == 1)


SERVER = """
import sys
from tengen.store import Column, Store, StoreConfig, TableConfig
table = TableConfig(name="t", columns={"value": Column(dtype="int64")}, max_loans=2)
store = Store(
    StoreConfig.of([table], memory_bytes=1 << 20, directory=sys.argv[1])
)
print("ready", flush=True)
sys.stdin.read()
"""


def start_server(directory: Path) -> subprocess.Popen:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return server


def test_a_client_of_a_killed_store_is_told(tmp_path):
    directory = tmp_path / "store"
    server = start_server(directory)
    store = Store.connect(directory, patience_s=0.5)
    sampler = store.table("t").sampler(1)
    with refused(UsageError, "directory ("):
        Store(
            StoreConfig.of(
                [TableConfig(name="t", columns={"value": Column(dtype="int64")})],
                directory=directory,
            )
        )
    server.send_signal(signal.SIGKILL)
    server.wait()
    with refused(UsageError, "store (", "has ended"):
        sampler.sample(timeout_s=300.0)
    with refused(RunError, "store (", "does not answer"):
        Store.connect(directory, patience_s=0.0)


def test_loans_are_bounded_by_the_next_server_too(tmp_path):
    directory = tmp_path / "store"
    server = start_server(directory)
    store = Store.connect(directory)
    store.table("t").insert("a", 0, {"value": np.int64(1)})
    sampler = store.table("t").sampler(1)
    batches = [sampler.sample(timeout_s=300.0) for _ in range(2)]
    server.kill()
    server.wait()
    heir = start_server(directory)
    with contextlib.closing(heir.stdin), contextlib.closing(heir.stdout):
        with refused(StoreTimeout, "2 batches"):
            sampler.sample(timeout_s=1.0)
        for batch in batches:
            batch.ack()
            sampler.sample(timeout_s=300.0)
        heir.kill()
        heir.wait()


def refuse_room(*_) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def refuse_thread(*_, **__) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    ("owner", "step", "refuse"),
    [
        (StoreFolder, "begin", refuse_room),
        (StoreFolder, "listen", refuse_room),
        (HostServer, "_serve", refuse_thread),
    ],
)
def test_clients_of_a_killed_store_outlast_a_start_that_fails(
    tmp_path, monkeypatch, owner, step, refuse
):
    directory = tmp_path / "store"
    server = start_server(directory)
    client = Store.connect(directory, patience_s=900.0)
    writer = client.writer("a", "t")
    sampler = client.table("t").sampler(1)
    for value in range(3):
        writer.append({"value": np.int64(value)})
        writer.insert("t", 1, timeout_s=300.0)
    writer.flush(timeout_s=300.0)
    server.kill()
    server.wait()
    table = TableConfig(name="t", columns={"value": Column(dtype="int64")}, max_loans=2)
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, refuse)
        with pytest.raises((UsageError, RuntimeError)) as refused:
            Store(StoreConfig.of([table], memory_bytes=1 << 20, directory=directory))
    if refuse is refuse_room:
        assert str(refused.value) == (
            f"directory ({directory}) cannot be used for a store: no space left on "
            "device; free space there, or choose another"
        )
    heir = start_server(directory)
    with contextlib.closing(heir.stdin), contextlib.closing(heir.stdout):
        writer.append({"value": np.int64(3)})
        writer.insert("t", 1, timeout_s=300.0)
        writer.flush(timeout_s=300.0)
        sampler.sample(timeout_s=300.0).ack()
        assert client.table("t").describe()["num_items"] == 4
        heir.kill()
        heir.wait()
