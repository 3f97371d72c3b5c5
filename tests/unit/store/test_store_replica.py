"""Replicas of a store: who gets one, and what is told of them."""

import contextlib
import subprocess
import sys
import time

import numpy as np
import pytest

from tengen import _core
from tengen.cli import main
from tengen.errors import UsageError
from tengen.store import Column, Replica, Store, StoreConfig, TableConfig
from tengen.store import replica as replica_module
from tengen.store.server import NetServer
from tests.refusals import refused
from tests.unit.store.test_store_net import CERTIFICATE, FINGERPRINT, KEY, TOKEN

TABLE = TableConfig(name="t", columns={"value": Column(dtype="int64")})
COMMAND = ("store", "replicate")
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
from tengen.cli import main
sys.exit(main(sys.argv[1:]))
"""


def made(folder, durability="async", token=None, **options):
    return Store(
        StoreConfig.of(
            [TABLE],
            memory_bytes=1 << 20,
            disk_bytes=1 << 22,
            disk_directory=folder,
            durability=durability,
            durability_ms=5.0,
            **options,
        ),
        token=token,
    )


def insert(store, count):
    with store.writer("w", "t") as writer:
        for value in range(writer.next_sequence, writer.next_sequence + count):
            writer.append({"value": np.int64(value)})
            writer.insert("t", 1)


def wait_until(holds):
    end = time.monotonic() + 600.0
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def follow(store, folder, **options):
    """Has a replica in a folder that has all that the store has."""
    store.checkpoint()
    with Replica(store.address, folder, name="copy", **options) as replica:
        asked = time.time()
        store.checkpoint()
        wait_until(
            lambda: (
                (age_s := replica.describe()["age_s"]) is not None
                and time.time() - age_s >= asked - 1e-3
            )
        )
        # It has its checkpoint before the store hears of it.
        wait_until(lambda: store.describe()["replicas"][0]["behind_s"] is not None)
        [told] = store.describe()["replicas"]
        assert told["name"] == "copy"
        assert told["behind_s"] >= 0.0
        assert replica.describe()["trouble"] == ""
        assert any("replica copy" in line for line in store.describe()["sessions"])
    wait_until(lambda: store.describe()["replicas"] == [])


def num_items(folder):
    with made(folder) as store:
        return store.table("t").describe()["num_items"]


def test_a_store_is_made_with_a_replica_s_folder(tmp_path):
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        insert(store, 100)
        follow(store, tmp_path / "copy")
        insert(store, 20)
        follow(store, tmp_path / "copy")
    assert num_items(tmp_path / "copy") == 120


def test_a_replica_that_is_closed_again_leaves_its_heir_alone(tmp_path):
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        insert(store, 3)
        store.checkpoint()
        with Replica(store.address, tmp_path / "copy") as replica:
            wait_until(lambda: replica.describe()["age_s"] is not None)
            replica.close()
            heir = made(tmp_path / "copy")
    with heir:
        assert heir.table("t").describe()["num_items"] == 3
        with refused(UsageError, "directory ("):
            made(tmp_path / "copy")


def test_a_replica_comes_by_token_and_tls(tmp_path):
    tls = {"certificate_file": CERTIFICATE, "key_file": KEY}
    with made(
        tmp_path / "disk", "checkpoint", listen="127.0.0.1:0", token=TOKEN, **tls
    ) as store:
        insert(store, 10)
        for trust in ({"ca_file": CERTIFICATE}, {"fingerprint": FINGERPRINT}):
            follow(store, tmp_path / "copy", token=TOKEN, **trust)
        with (
            Replica(
                store.address,
                tmp_path / "other",
                token=TOKEN.upper(),
                ca_file=CERTIFICATE,
            ) as replica,
            refused(UsageError, "token (not shown)"),
        ):
            replica.wait()
    assert num_items(tmp_path / "copy") == 10


def word_of(capsys, address, folder):
    assert main([*COMMAND, address, str(folder)]) == 2
    return capsys.readouterr().err


def test_what_has_no_checkpoints_has_no_replica(tmp_path, capsys):
    with Store(StoreConfig.of([TABLE], listen="127.0.0.1:0")) as store:
        error = word_of(capsys, store.address, tmp_path / "copy")
    assert "durability (none) must be checkpoint, async or sync" in error


def test_a_folder_of_another_store_stays_as_it_is(tmp_path, capsys):
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        insert(store, 10)
        follow(store, tmp_path / "copy")
    with made(tmp_path / "another", listen="127.0.0.1:0") as store:
        insert(store, 3)
        error = word_of(capsys, store.address, tmp_path / "copy")
        assert "must be new or belong to this store" in error
        error = word_of(capsys, store.address, tmp_path / "another")
        assert "is in use by a running store" in error
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    error = word_of(capsys, "tcp://127.0.0.1:1", tmp_path / "mine")
    assert "must be new, or that of a store" in error
    assert num_items(tmp_path / "copy") == 10


def test_replicas_and_heirs_follow_one_another(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for round_number in range(3):
        with made(first, listen="127.0.0.1:0") as store:
            insert(store, 10)
            follow(store, second)
        first, second = second, first
        assert num_items(first) == 10 * (round_number + 1)


def test_a_replica_waits_for_its_store(tmp_path):
    lines = []
    with contextlib.ExitStack() as stack:
        with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
            address = store.address
            insert(store, 10)
            follow(store, tmp_path / "copy")
            replica = stack.enter_context(
                Replica(address, tmp_path / "copy", tell=lines.append)
            )
            wait_until(lambda: store.describe()["replicas"] != [])
        wait_until(lambda: replica.describe()["trouble"] != "")
        with made(tmp_path / "disk", listen=address.removeprefix("tcp://")) as store:
            insert(store, 5)
            asked = time.time()
            store.checkpoint()
            wait_until(lambda: time.time() - replica.describe()["age_s"] >= asked)
            assert replica.describe()["trouble"] == ""
    assert len(lines) >= 1
    assert num_items(tmp_path / "copy") == 15


def test_a_replica_waits_for_a_store_that_closes(tmp_path):
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        insert(store, 10)
        # The core alone, so that the door is still there.
        store._backend.close()
        replica = Replica(store.address, tmp_path / "copy")
        wait_until(lambda: "closing" in replica.describe()["trouble"])
        assert not replica.wait(0.0)
    listen = store.address.removeprefix("tcp://")
    with replica, made(tmp_path / "disk", listen=listen) as store:
        store.checkpoint()
        wait_until(lambda: replica.describe()["age_s"] is not None)


def test_a_replica_waits_for_a_store_that_is_busy(tmp_path, monkeypatch):
    busy = "session (7) cannot have a descriptor: Too many open files; raise ulimit -n"
    opened = NetServer._open_replica

    def refuse(*_):
        raise _core.CoreError(busy)

    monkeypatch.setattr(NetServer, "_open_replica", lambda *given: opener(*given))
    opener = refuse
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        store.checkpoint()
        with Replica(store.address, tmp_path / "copy") as replica:
            wait_until(lambda: replica.describe()["trouble"] == busy)
            opener = opened
            wait_until(lambda: replica.describe()["age_s"] is not None)


def test_what_ends_a_replica_is_raised(tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(replica_module, "save_config", fail)
    with (
        made(tmp_path / "disk", listen="127.0.0.1:0") as store,
        Replica(store.address, tmp_path / "copy") as replica,
        pytest.raises(ZeroDivisionError),
    ):
        replica.wait()


def test_a_full_disk_is_told(tmp_path):
    with made(tmp_path / "disk", listen="127.0.0.1:0") as store:
        insert(store, 50_000)
        store.checkpoint()
        with subprocess.Popen(
            [sys.executable, "-c", LIMITED, *COMMAND, store.address, tmp_path / "copy"],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            line = process.stdout.readline()
            process.kill()
    assert line.startswith("tengen: folder (")
    assert "raise ulimit -f" in line
