"""What a client may take of a store's server: connections, lines, time, sessions."""

import contextlib
import json
import shutil
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tengen.errors import RunError, UsageError
from tengen.store import (
    Column,
    Selector,
    Store,
    StoreConfig,
    TableConfig,
    local_backend,
    messages,
    table,
)
from tengen.store.messages import VERSION
from tengen.store.server import HostServer, NetServer
from tengen.transport import SOCKET_NAME, NetAddress
from tengen.transport import server as transport_server

TABLE = TableConfig(
    name="t",
    columns={"value": Column(dtype="int64")},
    sampler=Selector(kind="prioritized"),
)
CERTIFICATE = Path(__file__).with_name("tls_certificate.pem")
KEY = Path(__file__).with_name("tls_key.pem")
HELLO = json.dumps({"version": VERSION, "token": ""}).encode() + b"\n"


class Door:
    """A way into a store: how clients of tengen come in, and what raw bytes get."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.is_host = kind == "host"
        tls = {"certificate_file": CERTIFICATE, "key_file": KEY}
        self.store = Store(
            StoreConfig.of(
                [TABLE],
                memory_bytes=1 << 20,
                directory=folder / "store",
                listen="127.0.0.1:0",
                **tls if kind == "tls" else {},
            )
        )
        self._trust = {"ca_file": CERTIFICATE} if kind == "tls" else {}
        self._folder = folder / "store"

    def connect(self) -> Store:
        if self.is_host:
            return Store.connect(self._folder)
        return Store.connect(self.store.address, **self._trust)

    def raw(self, source: str = "127.0.0.1") -> socket.socket:
        """Returns a connection that has greeted, and asks nothing."""
        if self.is_host:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(20.0)
            connection.connect(str(self._folder / SOCKET_NAME))
            return connection
        connection = self.silent(source)
        if self._trust:
            context = ssl.create_default_context(cafile=CERTIFICATE)
            connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
        connection.sendall(HELLO)
        return connection

    def num_connections(self) -> int:
        """Returns how many are being asked and answered."""
        kind = HostServer if self.is_host else NetServer
        [server] = [one for one in self.store._servers if isinstance(one, kind)]
        return server._server._connections._num_taken

    def silent(self, source: str = "127.0.0.1") -> socket.socket:
        """Returns a connection over TCP that has not even greeted."""
        address = NetAddress.parse(self.store.address)
        return socket.create_connection(
            (address.host, address.port), 20.0, source_address=(source, 0)
        )


@pytest.fixture
def open_door() -> Iterator:
    """Makes stores after the test has set limits."""
    with contextlib.ExitStack() as stack:

        def make(kind: str = "host") -> Door:
            # pytest's folders have names too long for a socket.
            folder = Path(tempfile.mkdtemp(prefix="tengen-"))
            stack.callback(shutil.rmtree, folder)
            door = Door(kind, folder)
            stack.enter_context(door.store)
            return door

        yield make


def last_word(connection: socket.socket) -> dict:
    """Returns the one line that comes, behind which the connection ends."""
    with connection, connection.makefile("rb") as answers:
        line, rest = answers.readline(), answers.read()
    assert rest == b""
    return json.loads(line)


def question(**fields: object) -> bytes:
    return json.dumps({"version": VERSION, **fields}).encode() + b"\n"


def wait_until(holds: object) -> None:
    end = time.monotonic() + 600.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def threads(name: str) -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == name}


DOORS = pytest.mark.parametrize("kind", ["host", "tcp", "tls"])


@DOORS
def test_a_connection_that_asks_nothing_is_told_and_closed(
    monkeypatch, open_door, kind: str
) -> None:
    monkeypatch.setattr(transport_server, "_LINE_S", 0.1, raising=False)
    door = open_door(kind)
    told = last_word(door.raw())
    assert told["kind"] == "run"
    assert told["error"].startswith("question (not whole) must come within 0.1 s")
    assert door.connect().table("t").describe()["num_items"] == 0


@DOORS
def test_a_connection_that_was_answered_is_closed(open_door, kind: str) -> None:
    door = open_door(kind)
    before = threads("store-hello") | threads("store-tls")
    connections = [door.raw() for _ in range(20)]
    for one in connections:
        one.sendall(question(ask="command", name="sessions", arguments={}))
        answer = b""
        while some := one.recv(4096):
            answer += some
        assert json.loads(answer) == {"answer": []}
    # Though none of the clients has closed its own.
    wait_until(lambda: not (threads("store-hello") | threads("store-tls")) - before)
    for one in connections:
        one.close()


def test_a_question_that_dribbles_has_a_deadline(monkeypatch, open_door) -> None:
    monkeypatch.setattr(transport_server, "_LINE_S", 0.3, raising=False)
    with open_door().raw() as connection:
        connection.sendall(b'{"ask": "')
        connection.settimeout(0.01)
        told = b""
        for _ in range(2000):
            with contextlib.suppress(TimeoutError, BrokenPipeError):
                connection.sendall(b" ")
                told += connection.recv(4096)
            if told.endswith(b"\n"):
                break
        assert b"question (not whole) must come within" in told


def test_a_long_line_is_refused_early(open_door) -> None:
    door = open_door()
    connection = door.raw()
    # The end of the line is never sent.
    connection.sendall(b'{"ask": "' + bytes(1 << 20).replace(b"\0", b"x"))
    told = last_word(connection)
    assert "must be at most 1048576; send less at a time" in told["error"]


@DOORS
def test_connections_that_are_too_many_are_told(
    monkeypatch, open_door, kind: str
) -> None:
    monkeypatch.setattr(transport_server, "_MAX_CONNECTIONS", 2, raising=False)
    monkeypatch.setattr(transport_server, "_LINGER_S", 0.01)
    door = open_door(kind)
    client = door.connect()
    # Of one other host's two places one is left to others.
    wait_until(lambda: door.num_connections() == 0)
    waiting = [door.raw() for _ in range(2 if door.is_host else 1)]
    wait_until(lambda: door.num_connections() == len(waiting))
    told = last_word(door.raw())
    assert told["kind"] == "full"
    assert told["error"].startswith("store (full) serves at most 2 connections at once")
    if not door.is_host:
        with pytest.raises(RunError, match=r"store \(full\) serves"):
            client.table("t").describe()
    for one in waiting:
        one.close()
    wait_until(lambda: door.num_connections() == 0)
    assert client.table("t").describe()["num_items"] == 0


def test_clients_of_the_host_wait_for_a_place(monkeypatch, open_door) -> None:
    monkeypatch.setattr(transport_server, "_MAX_CONNECTIONS", 1, raising=False)
    monkeypatch.setattr(transport_server, "_LINGER_S", 0.01)
    num_told = 0
    full = transport_server._full

    def count(*given: object) -> RunError:
        nonlocal num_told
        num_told += 1
        return full(*given)

    monkeypatch.setattr(transport_server, "_full", count)
    door = open_door()
    client = door.connect()
    wait_until(lambda: door.num_connections() == 0)
    waiting = door.raw()
    wait_until(lambda: door.num_connections() == 1)
    answers: list[dict] = []
    asking = threading.Thread(
        target=lambda: answers.append(client.table("t").describe())
    )
    asking.start()
    wait_until(lambda: num_told >= 2)
    waiting.close()
    asking.join(900)
    assert [one["num_items"] for one in answers] == [0]


@pytest.mark.skipif(sys.platform != "linux", reason="has one loopback address")
def test_a_host_that_says_nothing_does_not_lock_others_out(
    monkeypatch, open_door
) -> None:
    monkeypatch.setattr(transport_server, "_MAX_HELLOS", 4)
    door = open_door("tcp")
    silent = [door.silent("127.0.0.2") for _ in range(5)]
    told = b"".join(one.recv(4096) for one in silent[3:])
    assert told.count(b"store (full) serves at most 4 greetings at once") == 2
    connection = door.raw()
    connection.sendall(question(ask="command", name="sessions", arguments={}))
    assert last_word(connection) == {"answer": []}
    for one in silent:
        one.close()


@DOORS
def test_sessions_are_bounded_and_commands_go_on(
    monkeypatch, open_door, kind: str
) -> None:
    monkeypatch.setattr(transport_server, "_MAX_SESSIONS", 2, raising=False)
    door = open_door(kind)
    client = door.connect()
    sampler, writer = client.table("t").sampler(1), client.writer("a", "t")
    for call in (
        lambda: client.table("t").sampler(1),
        lambda: client.writer("b", "t"),
    ):
        with pytest.raises(
            RunError, match=r"session \(beside 2\) must be one of at most 2; close"
        ):
            call()
    assert len(client.describe()["sessions"]) == 2
    sampler.close()
    wait_until(lambda: len(client.describe()["sessions"]) == 1)
    client.table("t").sampler(1).close()
    writer.close()


@DOORS
def test_sessions_may_be_silent(monkeypatch, open_door, kind: str) -> None:
    for name in ("_HELLO_S", "_LINE_S", "_LINGER_S"):
        monkeypatch.setattr(transport_server, name, 0.5, raising=False)
    door = open_door(kind)
    client = door.connect()
    with client.writer("a", "t") as writer, client.table("t").sampler(1) as sampler:
        batches: list[int] = []
        waiting = threading.Thread(
            target=lambda: batches.append(
                int(sampler.sample(timeout_s=300.0).columns["value"][0])
            )
        )
        waiting.start()
        time.sleep(1.2)  # beyond every deadline
        writer.append({"value": np.int64(5)})
        writer.insert("t", 1)
        waiting.join(900)
        assert batches == [5]


def test_a_name_is_waited_for_no_longer_than_the_store_says(
    monkeypatch, open_door
) -> None:
    monkeypatch.setattr(messages, "_WAIT_FOR_NAME_S", 0.05)
    for kind in ("host", "tcp"):
        door = open_door(kind)
        with door.connect().writer("a", "t"):
            for wait_s in (1e12, float("inf"), float("nan"), -1e300):
                connection = door.raw()
                connection.sendall(
                    question(ask="writer", name="a", pool=0, wait_s=wait_s)
                )
                assert "writer (a)" in last_word(connection)["error"]


def test_a_checkpoint_is_waited_for_in_slices(tmp_path: Path) -> None:
    disk = {"disk_bytes": 1 << 24, "disk_directory": tmp_path / "disk"}
    with Store(StoreConfig.of([TABLE], durability="checkpoint", **disk)) as store:
        waited: list[float] = []
        backend = store._backend
        core, backend.core = (
            backend.core,
            SimpleNamespace(wait_checkpoint=lambda _, wait_s: waited.append(wait_s)),
        )
        for timeout_s in (0.2, 1e12, float("nan")):
            arguments = {"number": 1, "timeout_s": timeout_s}
            backend.command("wait_checkpoint", arguments)
        backend.core = core
    assert waited == [0.2, local_backend._CHECKPOINT_S, 0.0]


def test_many_keys_go_by_several_commands(monkeypatch, open_store) -> None:
    t = open_store(TABLE).table("t")
    t.insert("a", 0, {"value": np.arange(8)})
    batch = t.sample(64)
    keys = np.array(
        [batch.keys[batch.columns["value"] == value][0] for value in range(8)]
    )
    batch.ack()
    monkeypatch.setattr(table, "MAX_KEYS", 3, raising=False)
    t.set_priorities(keys, np.array([0, 0, 0, 0, 0, 0, 0, 2.0]))
    assert set(t.sample(64).columns["value"].tolist()) == {7}
    # None is set where the last of them is refused.
    with pytest.raises(UsageError, match=r"priority \(nan\) must be 0 to"):
        t.set_priorities(keys, np.array([1, 1, 1, 1, 1, 1, 1, np.nan]))
    assert set(t.sample(64).columns["value"].tolist()) == {7}
    assert t.erase(keys[:7]) == 7
    assert t.erase(keys) == 1
    t.set_priorities(keys[:0], np.zeros(0))
    assert t.erase(keys[:0]) == 0


def test_a_batch_has_no_more_bytes_than_memory(open_store) -> None:
    t = open_store(TABLE, memory_bytes=1 << 20).table("t")
    t.insert("a", 0, {"value": np.arange(8)})
    with pytest.raises(UsageError, match=r"num_samples \(65537\) must be"):
        t.sampler(65537)
    # A sample has 8 bytes, and its place in a batch 44.
    with pytest.raises(
        UsageError, match=r"batch \(30000 samples, 1560000 bytes\) must"
    ):
        t.sampler(30_000)
    assert len(t.sample(8).keys) == 8


def test_names_of_writers_are_short(open_store) -> None:
    store = open_store(TABLE)
    with pytest.raises(UsageError, match=r"writer \(257 bytes of name\) must"):
        store.writer("n" * 257, "t")
    with store.writer("n" * 256, "t") as writer:
        writer.append({"value": np.int64(1)})
        writer.insert("t", 1)


def test_more_keys_than_a_line_holds_are_taken(open_door) -> None:
    client = open_door().connect()
    keys = 2**62 + np.arange(60_000)
    assert client.table("t").erase(keys) == 0
    client.table("t").set_priorities(keys, np.linspace(0.1, 1e38, len(keys)))
