"""A store whose tables are larger than its memory."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import (
    Column,
    RateLimits,
    Selector,
    Store,
    StoreConfig,
    StoreTimeout,
    TableConfig,
)
from tests.refusals import refused

# A step is a chunk, and a chunk a page.
CHUNK = 4096
STEP = {"x": Column(dtype="int64", shape=(500,)), "number": Column(dtype="int64")}


def table_of(kind="prioritized", **settings):
    return TableConfig(
        name="t",
        columns=STEP,
        sampler=Selector(kind=kind, exponent=1.0),
        **{"steps_per_chunk": 1, **settings},
    )


def step(number):
    return {"x": np.arange(500) + number, "number": np.int64(number)}


def fill(store, count, first=0):
    with store.writer("w", "t") as writer:
        for number in range(first, first + count):
            writer.append(step(number), timeout_s=300.0)
            writer.insert("t", 1, timeout_s=300.0)
        writer.flush()


def use_up(batch):
    """Acknowledges a batch so that others are drawn first; returns its numbers."""
    numbers = check_steps(batch)
    batch.ack(np.zeros(len(numbers)))
    return numbers


def check_steps(batch):
    numbers = batch.columns["number"]
    np.testing.assert_array_equal(
        batch.columns["x"], np.arange(500) + np.asarray(numbers)[:, None]
    )
    return [int(number) for number in numbers]


def cold_store(folder, *tables, slots=16, **options):
    return Store(
        StoreConfig.of(
            tables,
            **{
                "memory_bytes": slots * CHUNK,
                "disk_bytes": 4 << 20,
                "disk_directory": folder / "disk",
                "seed": 3,
                **options,
            },
        )
    )


@pytest.mark.parametrize("where", ["here", "host", "net"])
def test_every_item_of_a_large_table_comes_back(folder, where):
    options = {
        "here": {},
        "host": {"directory": folder / "store"},
        "net": {"listen": "127.0.0.1:0"},
    }[where]
    with contextlib.ExitStack() as stack:
        table = table_of("fifo", max_times_sampled=1)
        store = stack.enter_context(cold_store(folder, table, **options))
        client = store
        if where != "here":
            address = store.address or folder / "store"
            client = stack.enter_context(Store.connect(address))
        fill(client, 200)
        sampler = client.table("t").sampler(4)
        numbers = []
        for _ in range(50):
            batch = sampler.sample(timeout_s=300.0)
            numbers += check_steps(batch)
            batch.ack()
        assert sorted(numbers) == list(range(200))
        told = client.table("t").describe()
        assert told["num_damaged"] == 0
        assert told["num_chunk_misses"] >= 160
        assert told["num_chunk_hits"] + told["num_chunk_misses"] == 200
    assert not (folder / "disk").exists()


def test_a_store_that_fits_writes_nothing(folder):
    with cold_store(folder, table_of(), slots=64, directory=folder / "store") as store:
        fill(store, 30)
        assert not list((folder / "disk").glob("rows-*"))
        fill(store, 10, first=30)
        store.table("t").sample(1).ack()
        end = time.monotonic() + 600.0
        while not list((folder / "disk").glob("rows-*")):
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize("kind", ["uniform", "prioritized", "fifo"])
@pytest.mark.parametrize("num_steps", [1, 3])
def test_draws_are_those_of_a_store_that_has_all_in_memory(folder, kind, num_steps):
    table = TableConfig(
        name="t",
        columns={
            "x": Column(dtype="int64", shape=(100,)),
            "number": Column(dtype="int64"),
        },
        sampler=Selector(kind=kind),
        max_items=150,
        num_steps=num_steps,
        steps_per_chunk=2,
    )
    rng = np.random.default_rng(1)
    with (
        Store(StoreConfig.of([table], memory_bytes=1 << 22, seed=3)) as warm,
        cold_store(folder, table, slots=48) as cold,
    ):
        stores = (warm, cold)
        writers = [one.writer("w", "t", max_item_steps=num_steps) for one in stores]
        samplers = [one.table("t").sampler(3, num_ahead=0) for one in stores]
        for number in range(600):
            columns = {"x": np.full(100, number), "number": np.int64(number)}
            for writer in writers:
                writer.append(columns, timeout_s=300.0)
                if number >= num_steps:
                    writer.insert("t", num_steps, priority=1.0, timeout_s=300.0)
            if number < 100 or number % 5:
                continue
            batches = [sampler.sample(timeout_s=300.0) for sampler in samplers]
            for name, column in batches[0].columns.items():
                np.testing.assert_array_equal(column, batches[1].columns[name])
            priorities = rng.random(3) if kind == "prioritized" else None
            for batch in batches:
                batch.ack(priorities)


def damage(folder, where):
    """Changes bytes in the rows of a store."""
    (path,) = (folder / "disk").glob("rows-*")
    with path.open("r+b") as file:
        for row in where:
            file.seek(row * CHUNK + 100)
            file.write(b"damaged")


def test_items_in_damaged_rows_are_removed_and_counted(folder, capfd):
    with cold_store(folder, table_of(), directory=folder / "store") as store:
        fill(store, 100)
        damage(folder, range(10, 20))
        sampler = store.table("t").sampler(2)
        numbers = set()
        for _ in range(150):
            numbers |= set(use_up(sampler.sample(timeout_s=300.0)))
        told = store.table("t").describe()
        assert told["num_damaged"] == 10
        assert told["num_items"] == 90
        # Some rows were in memory too when they were damaged, and were drawn there.
        assert 90 <= len(numbers) <= 100
        assert "row 1" in told["trouble"]
        assert str(folder / "disk" / "rows-0") in told["trouble"]
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if "rows-0" in line]) == 1


def test_a_file_that_is_cut_short_costs_what_lay_behind(folder):
    with cold_store(folder, table_of(), directory=folder / "store") as store:
        fill(store, 100)
        os.truncate(folder / "disk" / "rows-0", 40 * CHUNK)
        sampler = store.table("t").sampler(2)
        for _ in range(100):
            use_up(sampler.sample(timeout_s=300.0))
        told = store.table("t").describe()
        assert 30 <= told["num_damaged"] <= 60
        # Rows that were saved since have made the file longer, with nothing between.
        assert "is truncated" in told["trouble"] or "differs from" in told["trouble"]


def test_a_full_disk_has_the_removers_make_room(folder):
    with cold_store(folder, table_of(), disk_bytes=50 * CHUNK) as store:
        fill(store, 500)
        told = store.table("t").describe()
        assert 45 <= told["num_items"] <= 66
        numbers = []
        for _ in range(told["num_items"]):
            numbers += use_up(store.table("t").sample(1, timeout_s=300.0))
        # The oldest have gone.
        assert sorted(numbers) == list(range(500 - told["num_items"], 500))


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_store_disk import CHUNK, check_steps, cold_store, fill, table_of
# A file that may not grow stands for a disk that is full.
resource.setrlimit(resource.RLIMIT_FSIZE, (30 * CHUNK, resource.RLIM_INFINITY))
with cold_store(Path(sys.argv[1]), table_of()) as store:
    fill(store, 300)
    told = store.table("t").describe()
    assert 25 <= told["num_items"] <= 46, told
    assert "has no space" in told["trouble"], told
    for _ in range(20):
        batch = store.table("t").sample(2, timeout_s=300.0)
        check_steps(batch)
        batch.ack()
print("served on")
"""


def test_a_file_system_without_room_does_too(folder):
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.stdout == "served on\n", run.stderr


AGAIN = """
import resource, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_store_disk import CHUNK, cold_store, fill, table_of
resource.setrlimit(resource.RLIMIT_FSIZE, (30 * CHUNK, resource.RLIM_INFINITY))
with cold_store(Path(sys.argv[1]), table_of()) as store:
    fill(store, 300)
    told = store.table("t").describe()
    assert "has no space" in told["trouble"], told
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    while "trouble" in store.table("t").describe():
        time.sleep(0.05)
    before = store.table("t").describe()["num_items"]
    fill(store, 300)
    assert store.table("t").describe()["num_items"] == before + 300
print("used")
"""


def test_a_disk_that_has_room_again_is_used(folder):
    run = subprocess.run(
        [sys.executable, "-c", AGAIN, str(folder), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.stdout == "used\n", run.stderr


def test_a_batch_waits_for_memory_that_others_hold(folder):
    with cold_store(folder, table_of(), slots=8) as store:
        fill(store, 100)
        sampler = store.table("t").sampler(3, num_ahead=0)
        held = [sampler.sample(timeout_s=300.0) for _ in range(2)]
        with refused(StoreTimeout, "sample"):
            sampler.sample(timeout_s=0.2)
        for batch in held:
            batch.ack()
        assert len(check_steps(sampler.sample(timeout_s=300.0))) == 3


def test_what_is_drawn_ahead_counts_once(folder):
    table = table_of(
        "fifo", max_times_sampled=1, limits=RateLimits(min_size=1, min_cursor=0.0)
    )
    with cold_store(folder, table) as store:
        fill(store, 100)
        sampler = store.table("t").sampler(2, num_ahead=2)
        batch = sampler.sample(timeout_s=300.0)
        assert check_steps(batch) == [0, 1]
        batch.ack()
        del sampler, batch
        # The batches that nobody asked for were never drawn.
        assert store.table("t").describe()["num_samples"] == 2
        assert check_steps(store.table("t").sample(2, timeout_s=300.0)) == [2, 3]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"slots": 1}, "memory_bytes (4096"),
        ({"disk_bytes": 100}, "disk_bytes (100)"),
        ({"disk_bytes": 0}, "disk_bytes (0)"),
        ({"disk_directory": None}, "disk_directory (None)"),
        ({"disk_directory": "/proc/none"}, "disk_directory (/proc/none)"),
    ],
)
def test_what_cannot_be_is_refused(folder, options, error):
    with refused(UsageError, error):
        cold_store(folder, table_of(), **options)
    assert not (folder / "disk").exists()


def test_a_batch_that_memory_never_holds_is_refused(folder):
    with cold_store(folder, table_of(), directory=folder / "store") as store:
        with refused(UsageError, "batch (16 samples, 16 chunks of 4096"):
            store.table("t").sampler(16)
        with refused(UsageError, "batch (16 samples"):
            Store.connect(folder / "store").table("t").sampler(16)
        fill(store, 40)
        assert len(check_steps(store.table("t").sample(15, timeout_s=300.0))) == 15


def test_a_folder_is_one_store_s(folder):
    with (
        cold_store(folder, table_of()),
        refused(UsageError, "disk_directory ("),
    ):
        cold_store(folder, table_of())
    # By another name too.
    (folder / "link").symlink_to(folder / "disk")
    with (
        cold_store(folder, table_of()),
        refused(UsageError, "disk_directory ("),
    ):
        cold_store(folder, table_of(), disk_directory=folder / "link")
    (folder / "disk").mkdir()
    (folder / "disk" / "mine.txt").write_text("keep")
    with refused(UsageError, "disk_directory ("):
        cold_store(folder, table_of())
    assert (folder / "disk" / "mine.txt").read_text() == "keep"


def test_rows_that_a_killed_store_left_are_nobody_s(folder):
    (folder / "disk").mkdir()
    (folder / "disk" / "rows-0").write_bytes(b"old" * 10000)
    with cold_store(folder, table_of(), directory=folder / "store") as store:
        assert not list((folder / "disk").glob("rows-*"))
        fill(store, 100)
        assert len(check_steps(store.table("t").sample(8, timeout_s=300.0))) == 8
