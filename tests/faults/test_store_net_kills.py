"""Clients of a killed server get an error, or continue with its successor."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tengen.errors import RunError, TengenError, UsageError
from tengen.store import Store, StoreTimeout
from tests.refusals import refused

SERVER = """
import sys
from tengen.store import Column, RateLimits, Selector, Store, StoreConfig, TableConfig
table = TableConfig(
    name="queue",
    columns={"value": Column(dtype="int64")},
    sampler=Selector(kind="fifo"),
    max_times_sampled=1,
    limits=RateLimits.queue(40),
    steps_per_chunk=8,
)
address, directory = sys.argv[1], sys.argv[2] or None
store = Store(
    StoreConfig.of(
        [table], memory_bytes=1 << 20, listen=address, directory=directory
    )
)
print(store.address, flush=True)
sys.stdin.read()
"""


class Server:
    """A process that runs a store."""

    def __init__(self, listen: str, directory: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, listen, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as stack:

        def make(listen: str = "127.0.0.1:0", directory: str = "") -> Server:
            server = Server(listen, directory)
            stack.callback(server.kill)
            return server

        yield make


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 600.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_clients_of_a_killed_server_are_told(start):
    server = start()
    store = Store.connect(server.address)
    sampler = store.table("queue").sampler(1)
    writer = store.writer("a", "queue")
    errors: list[str] = []

    def wait() -> None:
        with contextlib.suppress(StoreTimeout):
            try:
                sampler.sample(timeout_s=300.0)
            except UsageError as error:
                errors.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    server.process.send_signal(signal.SIGKILL)
    waiter.join()
    assert errors
    assert "has ended, or has closed this client; connect again" in errors[0]

    def write() -> None:
        writer.append({"value": np.int64(1)})
        writer.insert("queue", 1)
        writer.flush(timeout_s=300.0)

    for _ in range(2):
        with refused(UsageError, "store (", "has ended"):
            write()
    with refused(RunError, "store (tcp://", "does not answer"):
        Store.connect(server.address)


def test_a_server_that_goes_on_loses_nothing(start, tmp_path):
    directory = str(tmp_path / "store")
    count, batch_size, num_kills = 1200, 3, 4
    server = start(directory=directory)
    address = server.address
    client = Store.connect(address)
    end = time.monotonic() + 600.0
    used: Counter[int] = Counter()

    def write() -> None:
        value = 0
        while value < count and time.monotonic() < end:
            try:
                with client.writer("w", "queue") as writer:
                    for value in range(writer.next_sequence, count):
                        writer.append({"value": np.int64(value)})
                        writer.insert("queue", 1, sequence=value)
                value = count
            except TengenError:
                time.sleep(0.02)

    def use() -> None:
        while len(used) < count and time.monotonic() < end:
            try:
                sampler = client.table("queue").sampler(batch_size, num_ahead=0)
                while len(used) < count:
                    batch = sampler.sample(timeout_s=0.5)
                    used.update(batch.columns["value"].tolist())
                    batch.ack()
            except TengenError:
                time.sleep(0.02)

    threads = [threading.Thread(target=write), threading.Thread(target=use)]
    for thread in threads:
        thread.start()
    for kill in range(num_kills):
        until(lambda kill=kill: len(used) > (kill + 1) * count // (num_kills + 2))
        server.kill()
        server = start(address, directory)
    for thread in threads:
        thread.join()
    assert set(used) == set(range(count))
    # A batch is sampled again if the killed server missed its acknowledgement.
    assert used.total() - count <= num_kills * batch_size
    assert client.table("queue").describe()["num_inserts"] == count
    # The last acknowledgements may still be in flight.
    until(lambda: client.table("queue").describe()["num_items"] == 0)
