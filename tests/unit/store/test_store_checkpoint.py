"""Stores whose disk outlives their memory."""

import dataclasses
import json
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import (
    Column,
    Selector,
    Store,
    StoreConfig,
    StoreTimeout,
    TableConfig,
)
from tests.refusals import refused

QUEUE = TableConfig(
    name="queue",
    columns={
        "value": Column(dtype="int64"),
        "frame": Column(dtype="uint8", shape=(9,)),
    },
    sampler=Selector(kind="fifo"),
    max_times_sampled=1,
    steps_per_chunk=8,
)


def durable(folder, table=QUEUE, durability="checkpoint", **options):
    defaults = {"memory_bytes": 1 << 17, "disk_bytes": 1 << 22}
    return Store(
        StoreConfig.of(
            [table],
            disk_directory=folder / "disk",
            durability=durability,
            **{**defaults, **options},
        )
    )


def fill(store, first, end):
    for value in range(first, end):
        columns = {"value": np.int64(value), "frame": np.full(9, value % 251, np.uint8)}
        store.table("queue").insert("writer", value, columns)
    store.flush()


def drain(store):
    values = []
    while store.table("queue").describe()["num_items"] > 0:
        batch = store.table("queue").sample(1, timeout_s=300.0)
        values += batch.columns["value"].tolist()
        assert (batch.columns["frame"] == values[-1] % 251).all()
        batch.ack()
    return values


def lose_memory(folder, into):
    """What the next host finds: a copy of the disk as it is at this instant."""
    shutil.copytree(folder / "disk", into / "disk")


def test_what_differs_from_the_store_that_ended_is_told(tmp_path):
    with durable(tmp_path, durability="sync"):
        pass
    with durable(tmp_path, disk_bytes=1 << 21, durability_ms=50.0) as store:
        assert store.differences == [
            "disk_bytes was 4194304 in the previous store, and is now 2097152",
            "durability was sync in the previous store, and is now checkpoint",
            "durability_ms was 100.0 in the previous store, and is now 50.0",
        ]
    with durable(
        tmp_path, disk_bytes=1 << 21, memory_bytes=1 << 18, durability_ms=50.0
    ) as store:
        assert store.differences == [
            "memory_bytes was 131072 in the previous store, and is now 262144",
        ]


@pytest.mark.parametrize("has_server", [False, True])
def test_what_was_there_at_a_checkpoint_is_there(tmp_path, has_server):
    options = {"directory": tmp_path / "store"} if has_server else {}
    with durable(tmp_path, **options) as store:
        assert store.describe()["checkpoints"] == {
            "durability": "checkpoint",
            "age_s": None,
        }
        fill(store, 0, 1003)
        store.checkpoint()
        assert 0 <= store.describe()["checkpoints"]["age_s"] < 60
        fill(store, 1003, 1100)
        lose_memory(tmp_path, tmp_path / "next")
    with durable(tmp_path / "next", memory_bytes=1 << 18) as store:
        assert [line.split()[0] for line in store.differences] == ["memory_bytes"]
        with store.writer("writer@queue", "queue") as writer:
            assert writer.next_sequence == 1003
        assert drain(store) == list(range(1003))


def test_a_closed_store_is_gone_on_with(tmp_path):
    with durable(tmp_path) as store:
        fill(store, 0, 21)
        store.table("queue").sample(3).ack()
        store.table("queue").sample(2)  # on loan when it ends
    table = dataclasses.replace(QUEUE, max_items=16)
    with durable(tmp_path, table) as store:
        assert store.differences == [
            "queue.max_items was 1000000 in the previous store, and is now 16"
        ]
        assert drain(store) == list(range(5, 21))


def test_a_store_that_took_a_priority_can_be_opened_again(tmp_path):
    table = dataclasses.replace(
        QUEUE, sampler=Selector(kind="prioritized"), max_times_sampled=0
    )

    def insert(store, priorities):
        columns = {"value": np.arange(2), "frame": np.zeros((2, 9), np.uint8)}
        store.table("queue").insert("writer", 0, columns, priorities)
        store.flush()

    with durable(tmp_path, table) as store:
        with refused(UsageError, "priority ("):
            insert(store, np.array([1.0, 1e39]))
        insert(store, np.array([3.4e38, 1e-50]))
        batch = store.table("queue").sample(2)
        with refused(UsageError, "priority ("):
            batch.ack(np.array([1e39, 1.0]))
    with durable(tmp_path, table) as store:
        t = store.table("queue")
        assert t.describe()["max_priority"] == float(np.float32(3.4e38))
        largest = t.sample(4)
        assert set(largest.columns["value"].tolist()) == {0}
        # Only 0 is kept as 0.
        largest.ack(np.zeros(4))
        assert set(t.sample(4).columns["value"].tolist()) == {1}


def test_a_second_checkpoint_writes_what_is_new(tmp_path):
    with durable(tmp_path, disk_bytes=1 << 26, memory_bytes=1 << 26) as store:
        rows = tmp_path / "disk" / "rows-0"
        fill(store, 0, 4000)
        store.checkpoint()
        before = rows.read_bytes()
        fill(store, 4000, 4008)
        store.checkpoint()
        after = rows.read_bytes()
        size = 4096
        changed = [
            at
            for at in range(0, len(after), size)
            if after[at : at + size] != before[at : at + size]
        ]
        assert len(changed) == 1


def test_draws_go_on_while_a_checkpoint_is_made(tmp_path):
    table = dataclasses.replace(
        QUEUE, sampler=Selector(kind="uniform"), max_times_sampled=0
    )
    with durable(tmp_path, table, memory_bytes=1 << 22) as store:
        fill(store, 0, 5000)
        maker = threading.Thread(target=store.checkpoint)
        maker.start()
        num_batches = 0
        while maker.is_alive() or num_batches < 10:
            store.table("queue").sample(16).ack()
            num_batches += 1
        maker.join()
        assert num_batches >= 10


@pytest.mark.parametrize("over", ["here", "host", "tcp"])
def test_a_flush_of_a_sync_store_is_kept(tmp_path, over):
    options = {"directory": tmp_path / "store", "listen": "127.0.0.1:0"}
    with durable(tmp_path, durability="sync", durability_ms=1e6, **options) as store:
        address = {"here": None, "host": tmp_path / "store", "tcp": store.address}[over]
        client = store if address is None else Store.connect(address)
        with client.writer("writer", "queue") as writer:
            for value in range(21):
                frame = np.full(9, value, np.uint8)
                writer.append({"value": np.int64(value), "frame": frame})
                writer.insert("queue", 1)
            writer.flush()
        lose_memory(tmp_path, tmp_path / "next")
        if client is not store:
            client.close()
    with durable(tmp_path / "next") as store:
        assert drain(store) == list(range(21))


def test_a_checkpoint_may_take_longer_than_its_caller_waits(tmp_path):
    with durable(tmp_path, memory_bytes=1 << 22) as store:
        fill(store, 0, 4000)
        with refused(StoreTimeout, "checkpoint"):
            store.checkpoint(timeout_s=0)
        store.checkpoint()


def test_a_client_asks_for_a_checkpoint(tmp_path):
    store = durable(tmp_path, directory=tmp_path / "store")
    with Store.connect(tmp_path / "store") as client:
        fill(client, 0, 40)
        client.checkpoint()
        assert client.describe()["checkpoints"]["age_s"] is not None
    lose_memory(tmp_path, tmp_path / "next")
    store.close()
    with durable(tmp_path / "next") as store:
        assert drain(store) == list(range(40))


def test_what_cannot_be_gone_on_with_is_refused_and_stays(tmp_path):
    with durable(tmp_path) as store:
        fill(store, 0, 9)
    with refused(UsageError, "disk_directory ("):
        durable(tmp_path, durability="none")
    other = dataclasses.replace(QUEUE, columns={"value": Column(dtype="int32")})
    with refused(UsageError, "queue.columns.frame (absent) must be "):
        durable(tmp_path, other)
    state = next((tmp_path / "disk").glob("state-[0-9]*"))
    whole = state.read_bytes()
    state.write_bytes(whole[:-8] + b"12345678")
    with refused(UsageError, "state (", "state-"):
        durable(tmp_path)
    state.write_bytes(whole)
    config = tmp_path / "disk" / "store.json"
    told = json.loads(config.read_text())
    for broken in ({}, {**told, "version": 1}):
        config.write_text(json.dumps(broken))
        with refused(UsageError, "disk_directory ("):
            durable(tmp_path)
    config.write_text(json.dumps(told))
    with durable(tmp_path) as store:
        assert drain(store) == list(range(9))


@pytest.mark.parametrize("has_server", [False, True])
def test_a_store_that_is_refused_leaves_no_word(tmp_path, has_server):
    options = {"directory": tmp_path / "store"} if has_server else {}
    with durable(tmp_path) as store:
        fill(store, 0, 9)
    other = dataclasses.replace(QUEUE, max_items=5)
    with refused(UsageError, "memory_bytes"):
        durable(tmp_path, other, memory_bytes=10, **options)
    with durable(tmp_path, other, **options) as store:
        assert any("max_items was" in line for line in store.differences)
        assert store.table("queue").describe()["max_items"] == 5


def test_durability_needs_a_disk(tmp_path):
    with refused(UsageError, 'durability ("often")'):
        durable(tmp_path, durability="often")
    with refused(UsageError, "durability_ms"):
        durable(tmp_path, durability="async", durability_ms=0.0)
    with refused(UsageError, "durability ("):
        StoreConfig(tables={"queue": QUEUE}, durability="async")
    with (
        Store(StoreConfig.of([QUEUE])) as store,
        refused(UsageError, "durability (none)"),
    ):
        store.checkpoint()


FULL = """
import dataclasses, resource, sys
from pathlib import Path
import numpy as np
from tengen.errors import UsageError
from tengen.store import Store, StoreConfig, StoreTimeout
from tests.unit.store.test_store_checkpoint import QUEUE, durable

table = dataclasses.replace(QUEUE, max_items=50)
folder = Path(sys.argv[1])
store = durable(folder, table, "sync", directory=folder / "store", disk_bytes=1 << 18)
client = store if sys.argv[2] == "here" else Store.connect(folder / "store")
writer = client.writer("writer", "queue")
try:
    for value in range(100_000):
        if value == 2050:
            limit = (1 << 10, resource.RLIM_INFINITY)
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        frame = np.full(9, value % 251, np.uint8)
        while True:
            try:
                writer.append({"value": np.int64(value), "frame": frame}, timeout_s=1.0)
                break
            except StoreTimeout as error:
                # Rows that the last checkpoint names are not written over.
                if "will not outlive" in str(error):
                    raise
        writer.insert("queue", 1)
        if value % 100 == 0:
            writer.flush()
            flushed = value
except (UsageError, StoreTimeout) as error:
    print(flushed)
    print(error)
    client.checkpoint()
"""


NOT_CLOSED = """
import resource, sys
from pathlib import Path
from tengen.errors import RunError
from tests.unit.store.test_store_checkpoint import durable, fill

store = durable(Path(sys.argv[1]))
fill(store, 0, 100)
store.checkpoint()
fill(store, 100, 2000)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, resource.RLIM_INFINITY))
try:
    store.close()
except RunError as error:
    print(error)
"""


def test_a_store_that_cannot_keep_its_end_says_so(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NOT_CLOSED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    assert "has saved nothing since its last checkpoint: what the store" in done.stdout
    with durable(tmp_path) as store:
        assert drain(store) == list(range(100))


def test_a_flush_is_kept_of_each_kind_of_steps(tmp_path):
    """The disk has no room for those of one table, and has for the other's."""
    tables = [
        TableConfig(
            name=name,
            columns={"x": Column(dtype="uint8", shape=(size,))},
            steps_per_chunk=1,
        )
        for name, size in (("large", 1 << 20), ("small", 4000))
    ]
    options = {
        "memory_bytes": 1 << 27,
        "disk_bytes": (1 << 21) + (1 << 19),
        "durability": "sync",
        "durability_ms": 1e7,
    }

    def make(disk):
        return Store(StoreConfig.of(tables, disk_directory=disk, **options))

    with make(tmp_path / "disk") as store:
        large, small = store.writer("l", "large"), store.writer("s", "small")
        for count, of_small in ((2, 0), (3, 60)):
            for writer, name, size, number in (
                (large, "large", 1 << 20, count),
                (small, "small", 4000, of_small),
            ):
                for _ in range(number):
                    writer.append({"x": np.zeros(size, np.uint8)})
                    writer.insert(name, 1)
            large.flush()
            small.flush()
        shutil.copytree(tmp_path / "disk", tmp_path / "next")
    with make(tmp_path / "next") as store:
        found = {name: store.table(name).describe() for name in ("large", "small")}
        assert {name: one["num_items"] for name, one in found.items()} == {
            "large": 5,
            "small": 60,
        }


@pytest.mark.parametrize("where", ["here", "host"])
def test_a_flush_that_cannot_be_kept_is_refused(tmp_path, where):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), where],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert "will not outlive its host: file (" in done.stdout
    # That is nothing its caller can put right, wherever it is.
    assert "RunError: what the store holds will not outlive its host" in done.stderr
    # What was flushed before is there, in its order.
    with durable(tmp_path, dataclasses.replace(QUEUE, max_items=50)) as store:
        values = drain(store)
    assert values == list(range(values[-1] - 49, values[-1] + 1))
    assert values[-1] >= int(done.stdout.split()[0])


def test_writers_that_come_after_a_loss_share_no_memory(tmp_path):
    """Steps of chunks that were not full come from the log into slabs of several."""
    table = dataclasses.replace(QUEUE, max_items=1000)
    numbers = {0: range(0, 100), 1: range(100, 200), 2: range(200, 300)}
    folder = tmp_path / "0"
    folder.mkdir()
    expected = set()
    for number, values in numbers.items():
        # Chunks of 4 KiB, sixteen in a slab.
        with durable(folder, table, memory_bytes=8 << 20, disk_bytes=64 << 20) as store:
            writers = [store.writer(f"w{i}", "queue") for i in range(20)]
            for value in values:
                writer = writers[value % 20]
                frame = np.full(9, value % 251, np.uint8)
                writer.append({"value": value, "frame": frame})
                writer.insert("queue", 1)
            expected.update(values)
            store.checkpoint()
            folder = tmp_path / str(number + 1)
            folder.mkdir()
            lose_memory(tmp_path / str(number), folder)
    with durable(folder, table, memory_bytes=8 << 20, disk_bytes=64 << 20) as store:
        assert sorted(drain(store)) == sorted(expected)
        assert store.table("queue").describe()["num_damaged"] == 0
