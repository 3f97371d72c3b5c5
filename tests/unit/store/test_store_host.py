"""What a store's server answers to those who speak to it wrongly."""

import contextlib
import errno
import gc
import json
import os
import resource
import shutil
import socket
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import RunError, UsageError
from tengen.store import (
    Column,
    RateLimits,
    Selector,
    Store,
    StoreConfig,
    StoreTimeout,
    TableConfig,
)
from tengen.store import store as store_module
from tengen.store.messages import WIRE_VERSION
from tengen.transport import LOCK_NAME, SOCKET_NAME, OwnedSocket
from tests.integration.runs import wait_for
from tests.refusals import refused

TABLE = TableConfig(name="t", columns={"value": Column(dtype="int64")})


@pytest.fixture
def directory():
    # pytest's folders have names too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="tengen-"))
    with Store(
        StoreConfig.of([TABLE], memory_bytes=1 << 20, directory=folder / "store")
    ):
        yield folder / "store"
    assert not (folder / "store").exists()
    shutil.rmtree(folder)


def ask(directory, line):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(directory / SOCKET_NAME))
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile() as answers:
            return json.loads(answers.readline())


def message(**fields):
    return json.dumps({"version": WIRE_VERSION, **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"hello\n", "message ("),
        (b"[1]\n", "message ("),
        (b'{"version": 99, "ask": "tables"}\n', "version (99)"),
        (message(ask="nothing"), "ask (nothing)"),
        (message(ask="writer"), "'name'"),
        (message(ask="writer", name="a", pool=7, wait_s=0), "writer (7)"),
        (message(ask="sampler", table=-1), "sampler (-1)"),
        (
            message(ask="sampler", table=0, num_samples="x", num_ahead=1),
            "message (sampler)",
        ),
        (
            message(ask="command", name="describe", arguments={"table": 3}),
            "table (3)",
        ),
        (message(ask="command", name="drop", arguments={}), "command (drop)"),
    ],
)
def test_messages_that_are_wrong_are_refused_and_others_served(directory, line, error):
    with refused(UsageError, error):
        raise UsageError(ask(directory, line)["error"])
    with Store.connect(directory) as store:
        store.table("t").insert("a", 0, {"value": np.int64(5)})
        assert store.table("t").sample(1).columns["value"].tolist() == [5]


def test_folders_of_others_are_left_alone(directory):
    with refused(UsageError, "directory ("):
        Store(StoreConfig.of([TABLE], directory=directory))
    other = directory.parent / "other"
    other.mkdir()
    (other / "precious").touch()
    with refused(UsageError, "directory ("):
        Store(StoreConfig.of([TABLE], directory=other))
    assert (other / "precious").exists()
    with refused(UsageError, "directory ("):
        Store(StoreConfig.of([TABLE], directory=directory.parent / ("x" * 120)))
    with refused(UsageError, "directory ("):
        Store(StoreConfig.of([TABLE], directory=directory.parent / "no" / "folder"))


def leave(directory, num_items):
    """Returns a folder as a store that is killed leaves it."""
    with Store.connect(directory) as client:
        for i in range(num_items):
            client.table("t").insert("a", i, {"value": np.int64(i)})
        client.flush()
    # The server hears of the end of a socket a moment later.
    wait_for(lambda: not list(directory.glob("session-*")))
    left = directory.parent / "left"
    of_others = shutil.ignore_patterns(SOCKET_NAME, LOCK_NAME)
    shutil.copytree(directory, left, ignore=of_others)
    return left


def test_a_store_that_cannot_listen_leaves_what_a_killed_one_held(
    directory, monkeypatch
):
    left = leave(directory, 5)
    key = Path(__file__).with_name("tls_key.pem")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for options in (
            {"listen": f"127.0.0.1:{port}"},
            {"listen": "0.0.0.0:0"},
            {"listen": "127.0.0.1:0", "certificate_file": key, "key_file": key},
        ):
            with pytest.raises(UsageError):
                Store(
                    StoreConfig.of(
                        [TABLE], memory_bytes=1 << 20, directory=left, **options
                    )
                )

    def fail(*_):
        raise RunError("gateway (none) cannot be made")

    monkeypatch.setattr(store_module, "NetServer", fail)
    with refused(RunError, "gateway"):
        Store(
            StoreConfig.of(
                [TABLE], memory_bytes=1 << 20, directory=left, listen="127.0.0.1:0"
            )
        )
    with Store(StoreConfig.of([TABLE], memory_bytes=1 << 20, directory=left)) as heir:
        assert heir.table("t").describe()["num_items"] == 5


def test_no_client_waits_for_another_server_while_one_answers(directory):
    with Store(
        StoreConfig.of([TABLE], directory=directory.parent / "closing")
    ) as store:
        client = Store.connect(directory.parent / "closing", patience_s=1e6)
        # The core alone, so that the door is still there.
        store._backend.close()
        for call in (client.table("t").describe, lambda: client.writer("a", "t")):
            with refused(RunError, "store (closing)"):
                call()


def test_a_server_that_was_short_of_descriptors_lets_clients_in_again(
    directory, monkeypatch
):
    reasons = [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS]
    accept, start = OwnedSocket.accept, threading.Thread.start
    num_threads_refused = 2

    def accept_later(listener):
        if reasons:
            raise OSError(reasons.pop(), "no room")
        return accept(listener)

    def start_later(thread):
        nonlocal num_threads_refused
        if thread.name == "store-hello" and num_threads_refused:
            num_threads_refused -= 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(OwnedSocket, "accept", accept_later)
    monkeypatch.setattr(threading.Thread, "start", start_later)
    with Store(
        StoreConfig.of(
            [TABLE], memory_bytes=1 << 20, directory=directory.parent / "short"
        )
    ):
        store = Store.connect(directory.parent / "short", patience_s=30.0)
        assert store.table("t").describe()["num_items"] == 0
    assert (reasons, num_threads_refused) == ([], 0)


def test_sessions_leave_descriptors_for_commands(directory):
    store = Store.connect(directory)
    table = store.table("t")
    gc.collect()  # what earlier tests left must not close descriptors below
    with table.sampler(1):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        held = [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
        limit = max(held) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        try:
            for call in (lambda: table.sampler(1), lambda: store.writer("a", "t")):
                # Descriptors that threads of earlier tests have closed are taken too.
                with contextlib.suppress(OSError):
                    while True:
                        held.append(os.open("/dev/null", os.O_RDONLY))
                # A twelfth is left, less than the eighth that sessions leave but more
                # than a question needs.
                for _ in range(limit // 12):
                    os.close(held.pop())
                with refused(RunError, "session (descriptor"):
                    call()
            assert table.describe()["num_items"] == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for descriptor in held:
                os.close(descriptor)
    store.writer("a", "t").close()


def test_calls_end_where_the_server_stands_still(directory):
    patient, store = Store.connect(directory), Store.connect(directory, patience_s=0.02)
    (directory / SOCKET_NAME).rename(directory / "another")
    value = {"value": np.int64(1)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(str(directory / SOCKET_NAME))
        silent.listen(4)  # some wait to be let in, and some cannot even do that
        calls = (
            store.describe,
            store.table("t").describe,
            lambda: store.writer("a", "t"),
            lambda: store.table("t").sampler(1),
            lambda: Store.connect(directory, patience_s=0.02),
            lambda: patient.checkpoint(0.02),
            lambda: patient.table("t").sample(1, 0.02),
            lambda: patient.table("t").insert("a", 0, value, timeout_s=0.02),
        )
        with ThreadPoolExecutor(len(calls)) as pool:  # each waits for some seconds
            for asked in [pool.submit(call) for call in calls]:
                with refused(RunError, "store ("):
                    asked.result()
    (directory / "another").rename(directory / SOCKET_NAME)
    patient.table("t").insert("a", 0, value, timeout_s=300.0)


def test_an_insert_waits_no_longer_for_another_thread(directory):
    store = Store.connect(directory)
    with (
        store._senders.lend(("a", "t")),
        ThreadPoolExecutor() as pool,
        refused(StoreTimeout, "0.01 s"),
    ):
        pool.submit(
            store.table("t").insert, "a", 0, {"value": np.int64(1)}, timeout_s=0.01
        ).result()


def test_every_client_gone_leaves_no_file(directory):
    store = Store.connect(directory)
    sampler = store.table("t").sampler(2)
    assert list(directory.glob("session-*"))
    del sampler, store
    for _ in range(1000):
        if not list(directory.glob("session-*")):
            break
        # The server hears of the end of a socket a moment later.
        Store.connect(directory)
    assert not list(directory.glob("session-*"))


@pytest.mark.parametrize("connects", [False, True], ids=["own", "client"])
def test_of_writers_that_wait_for_room_none_starves(connects):
    """The learner takes items one by one, and each writer has others waiting.

    A learner that is a client takes turns with the writers.
    """
    directory = Path(tempfile.mkdtemp(prefix="tengen-")) / "store"
    queue = TableConfig(
        name="t",
        columns={"value": Column(dtype="int64")},
        sampler=Selector(kind="fifo"),
        remover=Selector(kind="fifo"),
        max_items=4,
        max_times_sampled=1,
        limits=RateLimits.queue(4),
    )
    num_writers, num_drawn = 4, 400
    is_over = threading.Event()
    all_are_there = threading.Barrier(num_writers + 1, timeout=900)

    def write(number):
        with Store.connect(directory) as client:
            writer = client.writer(f"w{number}", "t")
            all_are_there.wait()
            while not is_over.is_set():
                # Who gives up loses its place in the queue.
                writer.append({"value": np.int64(number)}, timeout_s=900)
                writer.insert("t", 1, timeout_s=900)

    with (
        Store(
            StoreConfig.of([queue], memory_bytes=1 << 20, directory=directory)
        ) as store,
        ThreadPoolExecutor(num_writers) as pool,
    ):
        written = [pool.submit(write, number) for number in range(num_writers)]
        found = []
        learner = Store.connect(directory) if connects else store
        all_are_there.wait()
        for _ in range(num_drawn):
            batch = learner.table("t").sample(1, 900.0)
            found.append(int(batch.columns["value"][0]))
            batch.ack()
        is_over.set()
        # Writers wait for room to the end.
        while not all(one.done() for one in written):
            with contextlib.suppress(StoreTimeout):
                store.table("t").sample(1, 0.1).ack()
        for one in written:
            assert one.exception() is None
        counts = np.bincount(found[num_drawn // 4 :], minlength=num_writers)
        # Of 300 each has 75 where all are as quick.
        assert counts.min() > 20, counts
