"""Servers are killed or stand still: their clients hear of it, the others' do not."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tengen.errors import RunError, TengenError, TengenWarning, UsageError
from tengen.store import Store, StoreTimeout, shards
from tengen.store import client as store_client

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
    """A store in a process of its own."""

    def __init__(self, listen: str, directory: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, listen, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def stand_still(self) -> None:
        """Stops every thread of it, and returns once all of them have stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def start(monkeypatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setattr(shards, "_LOOK_S", 0.05)
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
        with pytest.raises(UsageError, match="has ended, or has closed this client"):
            write()
    with pytest.raises(RunError, match=r"store \(tcp://.*\) does not answer"):
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
    # A batch whose acknowledgement a killed server had not heard of comes again.
    assert used.total() - count <= num_kills * batch_size
    assert client.table("queue").describe()["num_inserts"] == count
    # The last acknowledgements are under way.
    until(lambda: client.table("queue").describe()["num_items"] == 0)


class Writers:
    """A thread a name: each inserts its values in order, and goes on after a loss.

    Values that were lost with their server are not sent again, as they may have been
    used. Half of the values are kept back until ``rest`` is set, so that there is
    something left to insert however late a loss is noticed.
    """

    COUNT = 200

    def __init__(self, client: Store, num_writers: int, end: float) -> None:
        self.rest = threading.Event()
        self.flushed: list[set[int]] = [set() for _ in range(num_writers)]
        self._client = client
        self._end = end
        self.threads = [
            threading.Thread(target=self._write, args=(number,))
            for number in range(num_writers)
        ]
        for thread in self.threads:
            thread.start()

    def _write(self, number: int) -> None:
        value = number * self.COUNT
        while value < (number + 1) * self.COUNT and time.monotonic() < self._end:
            try:
                with self._client.writer(name_of(number), "queue") as writer:
                    while value < (number + 1) * self.COUNT:
                        if value == number * self.COUNT + self.COUNT // 2:
                            self.rest.wait(600.0)
                        value += 1
                        writer.append({"value": np.int64(value - 1)})
                        writer.insert("queue", 1, timeout_s=300.0)
                        writer.flush(timeout_s=300.0)
                        self.flushed[number].add(value - 1)
            except TengenError:
                time.sleep(0.02)


def name_of(number: int) -> str:
    return f"writer-{number}"


def test_a_killed_shard_costs_the_others_nothing(start):
    servers = [start() for _ in range(3)]
    num_writers = 6
    homes = [shards.shard_of(name_of(number), 3) for number in range(num_writers)]
    victim = homes[0]
    assert set(homes) == {0, 1, 2}
    client = Store.connect([server.address for server in servers])
    end = time.monotonic() + 600.0
    used: Counter[int] = Counter()
    is_over = threading.Event()

    def use() -> None:
        sampler = client.table("queue").sampler(1)
        while not is_over.is_set():
            with contextlib.suppress(StoreTimeout):
                batch = sampler.sample(timeout_s=0.1)
                used.update(batch.columns["value"].tolist())
                batch.ack()

    user = threading.Thread(target=use)
    user.start()
    writers = Writers(client, num_writers, end)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        until(lambda: used.total() > 200)
        address = servers[victim].address
        servers[victim].kill()
        until(lambda: list(client.missing) == [address])
        before = used.total()
        writers.rest.set()
        until(lambda: used.total() > before + 100)
        assert list(client.missing) == [address]
        back = start(address)
        until(lambda: not client.missing)
    assert [str(one.message) for one in told if one.category is TengenWarning]
    for thread in writers.threads:
        thread.join()

    def num_left() -> int:
        return int(client.table("queue").describe()["num_items"])

    until(lambda: num_left() == 0)
    is_over.set()
    user.join()
    client.close()
    del back
    # Nothing is used twice, and nothing that was inserted elsewhere is lost.
    assert max(used.values()) == 1
    for number, home in enumerate(homes):
        own = set(range(number * Writers.COUNT, (number + 1) * Writers.COUNT))
        if home == victim:
            # Some of it was lost with the server; what came later was not.
            assert own & set(used) <= own
            assert writers.flushed[number] - set(used) < own
            assert len(own - set(used)) <= 40 + 1
        else:
            assert writers.flushed[number] == own
            assert own <= set(used)


def test_a_shard_that_stands_still_leaves_the_others_serving(start, monkeypatch):
    monkeypatch.setattr(store_client, "_ANSWER_S", 0.5)
    servers = [start() for _ in range(2)]
    client = Store.connect([server.address for server in servers])
    names = [
        next(n for n in map(name_of, range(99)) if shards.shard_of(n, 2) == s)
        for s in range(2)
    ]
    for name in names:
        with client.writer(name, "queue") as writer:
            for value in range(30):
                writer.append({"value": np.int64(value)})
                writer.insert("queue", 1)
    sampler = client.table("queue").sampler(1, num_ahead=0)

    def draw(count: int) -> Counter[int]:
        values: Counter[int] = Counter()
        for _ in range(count):
            batch = sampler.sample(timeout_s=300.0)
            values.update(batch.columns["value"].tolist())
            batch.ack()
        return values

    drawn = draw(8)
    assert drawn == Counter(dict.fromkeys(range(4), 2))  # of both, which hold as much
    held = [sampler.sample(timeout_s=300.0) for _ in range(2)]
    assert [batch.columns["value"].tolist() for batch in held] == [[4], [4]]
    servers[0].stand_still()
    with pytest.warns(TengenWarning, match="does not answer; its .* are missing"):
        drawn += draw(20)
    assert list(client.missing) == [servers[0].address]
    servers[0].process.send_signal(signal.SIGCONT)
    until(lambda: not client.missing)
    drawn += draw(60 - 28 - 1)
    # Each was drawn of both, and none twice: what was under way or held came back from
    # the server that was lost, and stays held from the other.
    assert drawn + Counter([4]) == Counter(dict.fromkeys(range(30), 2))
    client.close()
