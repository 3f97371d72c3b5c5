"""What a client may take of a store; `tests/unit/transport` has the server's limits."""

import functools
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tengen.errors import RunError, UsageError
from tengen.store import Column, Selector, StoreConfig, TableConfig, server
from tengen.store.local_backend import LocalBackend
from tengen.store.messages import wait_for_name_s
from tengen.transport import Limits, Service
from tests.refusals import refused

TABLE = TableConfig(
    name="t",
    columns={"value": Column(dtype="int64")},
    sampler=Selector(kind="prioritized"),
)


@pytest.fixture
def two_sessions(monkeypatch):
    """Makes servers that take two sessions."""
    limited = functools.partial(Service, limits=Limits(max_sessions=2))
    monkeypatch.setattr(server, "Service", limited)


def test_sessions_are_bounded_and_commands_go_on(two_sessions, open_store):
    store = open_store(TABLE)
    with store.table("t").sampler(1), store.writer("a", "t"):
        sessions = store.describe()["sessions"]
        if not sessions:
            pytest.skip("a store of this process has no server")
        assert len(sessions) == 2
        for call in (
            lambda: store.table("t").sampler(1),
            lambda: store.writer("b", "t"),
        ):
            with refused(RunError, "session (beside 2)"):
                call()
    # The server notices the end of a session when its thread reads the closed socket.
    until = time.monotonic() + 900.0
    while True:
        try:
            store.table("t").sampler(1).close()
            break
        except RunError:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.mark.parametrize("wait_s", [1e12, float("inf"), float("nan"), -1e300, 0.3])
def test_a_name_is_waited_for_no_longer_than_the_store_says(wait_s):
    assert 0.0 <= wait_for_name_s(wait_s) <= 5.0


def test_a_checkpoint_is_waited_for_in_slices(tmp_path):
    disk = {"disk_bytes": 1 << 24, "disk_directory": tmp_path}
    backend = LocalBackend(StoreConfig.of([TABLE], durability="checkpoint", **disk))
    waited = []
    backend.core = SimpleNamespace(
        wait_checkpoint=lambda _, wait_s: waited.append(wait_s)
    )
    for timeout_s in (0.2, 1e12, float("nan")):
        backend.command("wait_checkpoint", {"number": 1, "timeout_s": timeout_s})
    assert waited == [0.2, 1.0, 0.0]


def test_a_batch_has_no_more_bytes_than_memory(open_store):
    t = open_store(TABLE, memory_bytes=1 << 20).table("t")
    t.insert("a", 0, {"value": np.arange(8)})
    with refused(UsageError, "num_samples (65537)"):
        t.sampler(65537)
    # A sample has 8 bytes, and its place in a batch 44.
    with refused(UsageError, "batch (30000 samples, 1560000 bytes)"):
        t.sampler(30_000)
    assert len(t.sample(8).keys) == 8


def test_names_of_writers_are_short(open_store):
    store = open_store(TABLE)
    with refused(UsageError, "writer (257 bytes of name)"):
        store.writer("n" * 257, "t")
    with store.writer("n" * 256, "t") as writer:
        writer.append({"value": np.int64(1)})
        writer.insert("t", 1)
