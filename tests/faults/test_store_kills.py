"""Clients of a store are killed at random instants: nothing is lost or doubled."""

import contextlib
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.store import Column, RateLimits, Selector, Store, TableConfig

CLIENT = Path(__file__).with_name("store_client.py")
BATCH = 3


def start(action: str, directory: Path, log: Path, count: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(CLIENT), action, str(directory), str(log), str(count)]
    )


def read_log(log: Path) -> tuple[Counter, Counter]:
    """Values whose use was announced, and those whose acknowledgement was sent."""
    announced: Counter = Counter()
    sent: Counter = Counter()
    data = log.read_bytes() if log.exists() else b""
    size = 1 + 8 * BATCH
    for at in range(0, len(data) - size + 1, size):
        into = announced if data[at : at + 1] == b"?" else sent
        into.update(struct.unpack_from(f"<{BATCH}q", data, at + 1))
    return announced, sent


def run_with_kills(folder: Path, num_kills: int, count: int, seed: int) -> None:
    """Kills writers and users of a queue until all items were used."""
    rng = random.Random(seed)
    table = TableConfig(
        name="queue",
        columns={"value": Column(dtype="int64")},
        sampler=Selector(kind="fifo"),
        max_times_sampled=1,
        limits=RateLimits.queue(40),
        steps_per_chunk=8,
    )
    directory = folder / "store"
    logs = [folder / f"log-{i}" for i in range(2)]
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(
            Store([table], memory_bytes=1 << 20, directory=directory)
        )
        processes = {
            "write": start("write", directory, logs[0], count),
            **{i: start("use", directory, logs[i], count) for i in range(2)},
        }
        stack.callback(lambda: [one.kill() for one in processes.values()])
        killed = 0
        end = time.monotonic() + 120.0
        # The last items wait for a batch that is never full.
        while store.table("queue").describe()["num_samples"] < count - BATCH:
            assert time.monotonic() < end, store.table("queue").describe()
            time.sleep(rng.uniform(0.0, 0.03))
            name = rng.choice(list(processes))
            process = processes[name]
            if killed < num_kills and process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
            if process.poll() is not None and (name != "write" or process.returncode):
                action = "write" if name == "write" else "use"
                log = logs[0 if name == "write" else name]
                # A record that the kill cut short does not shift the next ones.
                size = log.stat().st_size if log.exists() else 0
                if action == "use" and size % (1 + 8 * BATCH):
                    with log.open("ab") as file:
                        file.truncate(size - size % (1 + 8 * BATCH))
                processes[name] = start(action, directory, log, count)
        assert killed == num_kills
        for process in processes.values():
            process.kill()
            process.wait()
        # What no client acknowledged is there, and comes once.
        left: Counter = Counter()
        sampler = store.table("queue").sampler(1)
        for _ in range(count):
            if store.table("queue").describe()["num_items"] == 0:
                break
            batch = sampler.sample(timeout_s=20.0)
            left.update(batch.columns["value"].tolist())
            batch.ack()
        announced, sent = Counter(), Counter()
        for log in logs:
            more_announced, more_sent = read_log(log)
            announced += more_announced
            sent += more_sent
    assert max(sent.values()) == 1
    assert max(left.values(), default=1) == 1
    assert not sent & left
    # An item is used, or left, or was acknowledged in the instant of a kill.
    missing = set(range(count)) - set(sent) - set(left)
    assert missing <= set(announced) - set(sent)
    assert len(missing) <= num_kills * BATCH
    assert not set(sent) | set(left) > set(range(count))


def test_no_item_is_lost_or_doubled_by_kills(tmp_path):
    run_with_kills(tmp_path, num_kills=12, count=6000, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_no_item_is_lost_or_doubled_by_many_kills(tmp_path, seed):
    run_with_kills(tmp_path, num_kills=50, count=40000, seed=seed)


SERVER = """
import sys
from tengen.store import Column, Store, TableConfig
table = TableConfig(name="t", columns={"value": Column(dtype="int64")})
store = Store([table], memory_bytes=1 << 20, directory=sys.argv[1])
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
    store = Store.connect(directory)
    sampler = store.table("t").sampler(1)
    with pytest.raises(UsageError, match="is a running store's"):
        Store(
            [TableConfig(name="t", columns={"value": Column(dtype="int64")})],
            directory=directory,
        )
    server.send_signal(signal.SIGKILL)
    server.wait()
    with pytest.raises(UsageError, match="has ended, or has closed this client"):
        sampler.sample(timeout_s=20.0)
    with pytest.raises(RunError, match="does not answer"):
        Store.connect(directory)
    # The folder that it left is taken over.
    again = start_server(directory)
    assert Store.connect(directory).table("t").describe()["num_items"] == 0
    again.send_signal(signal.SIGKILL)
    again.wait()
