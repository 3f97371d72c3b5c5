"""Samplers: their end, and what they are not asked for."""

import threading

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
    arguments,
)
from tests.refusals import refused


def table(**fields):
    return TableConfig(name="t", columns={"number": Column(dtype="int64")}, **fields)


QUEUE = table(
    sampler=Selector(kind="fifo"), max_times_sampled=1, limits=RateLimits.queue(1000)
)


def fill(store, count):
    with store.writer("filler", "t") as writer:
        writer.append({"number": np.arange(count)})
        writer.insert_each("t")


def test_a_sampler_that_is_closed_gives_back_what_it_drew(open_store):
    store = open_store(QUEUE)
    fill(store, 12)
    with store.table("t").sampler(2, num_ahead=3) as sampler:
        used = sampler.sample(20.0)
        used.ack()
        kept = sampler.sample(20.0)
    again = store.table("t").sample(10, 20.0)
    assert sorted(again.columns["number"].tolist()) == list(range(2, 12))
    assert kept.columns["number"].tolist() == [2, 3]
    sampler.close()
    for call in (sampler.sample, kept.ack, lambda: sampler.give_back(kept)):
        with refused(UsageError, "sampler (t, closed)"):
            call()


def test_a_sampler_that_acknowledges_nothing_waits(open_store):
    store = open_store(table(max_loans=3))
    fill(store, 5)
    for num_ahead in (0, 5):
        with store.table("t").sampler(2, num_ahead=num_ahead) as sampler:
            batches = [sampler.sample(20.0) for _ in range(3)]
            waits = "sample waits: 3 batches are not acknowledged"
            with refused(StoreTimeout, waits):
                sampler.sample(0.05)
            assert all(waits in line for line in store.describe()["sessions"])
            batches[1].ack()
            batches[1] = sampler.sample(20.0)
            sampler.give_back(batches[0])
            sampler.sample(20.0)
            with refused(StoreTimeout, waits):
                sampler.sample(0.05)
    # Another one has its own.
    store.table("t").sample(1, 20.0).ack()


def test_a_store_that_is_closed_ends_what_other_threads_wait_for(open_store):
    store = open_store(table(limits=RateLimits.queue(1)))
    writer = store.writer("a", "t")
    errors = []
    writing = threading.Event()

    def run(call):
        try:
            call()
        except UsageError as error:
            errors.append(str(error))

    def write():
        writer.append({"number": np.arange(3)})
        writing.set()
        writer.insert_each("t")
        writer.flush()

    threads = [
        threading.Thread(target=run, args=(call,), daemon=True)
        for call in (write, lambda: store.table("t").sample(5))
    ]
    for thread in threads:
        thread.start()
    writing.wait()
    store.close()
    for thread in threads:
        thread.join(900)
    assert ["closed" in error for error in errors] == [True, True]


def test_a_client_that_is_closed_gives_back_what_it_drew_and_asks_no_more():
    with Store(
        StoreConfig.of([QUEUE], memory_bytes=1 << 20, listen="127.0.0.1:0")
    ) as store:
        fill(store, 3)
        client = Store.connect(store.address)
        remote = client.table("t")
        remote.sample(3, 20.0)
        client.close()
        assert store.table("t").sample(3, 20.0).table_size == 3
        for call in (remote.describe, lambda: remote.sample(1)):
            with refused(UsageError, "closed)"):
                call()


def test_threads_insert_while_others_wait_for_items(open_store):
    store = open_store(QUEUE)
    drawn = []

    def sample(count):
        batch = store.table("t").sample(count, 60.0)
        drawn.extend(batch.columns["number"].tolist())
        batch.ack()

    waiting = [threading.Thread(target=sample, args=(1,)) for _ in range(4)]
    waiting.append(threading.Thread(target=sample, args=(2,)))
    for thread in waiting:
        thread.start()
    for number in range(6):
        store.table("t").insert("a", number, {"number": number}, timeout_s=300.0)
    for thread in waiting:
        thread.join(900)
    assert sorted(drawn) == list(range(6))


@pytest.mark.parametrize("num_samples", [10**9, 2**31, 2**70, 0, -1])
def test_batches_that_can_never_be_are_refused_at_once(open_store, num_samples):
    asked = open_store(table()).table("t")
    for ask in (asked.sampler, asked.sample):
        with refused(UsageError, f"num_samples ({num_samples})"):
            ask(num_samples)


def test_batches_larger_than_memory_are_refused_at_once(open_store, monkeypatch):
    columns = {"pixels": Column(dtype="uint8", shape=(10, 40))}
    wide = TableConfig(name="t", columns=columns, num_steps=2)
    asked = open_store(wide).table("t")
    monkeypatch.setattr(arguments, "memory_limit_bytes", lambda: 799 * 100)
    with refused(UsageError, "num_samples (100)", "(79900"):
        asked.sampler(100)
    asked.sampler(99)


@pytest.mark.parametrize("num_ahead", [-1, 1025])
def test_batches_ahead_are_bounded(open_store, num_ahead):
    with refused(UsageError, f"num_ahead ({num_ahead})"):
        open_store(table()).table("t").sampler(1, num_ahead=num_ahead)


def test_numbers_of_numpy_are_numbers(open_store):
    store = open_store(table())
    fill(store, 4)
    sampler = store.table("t").sampler(np.int64(3), num_ahead=np.int32(0))
    assert len(sampler.sample(20.0).keys) == 3
    assert len(store.table("t").sample(np.int64(3), 20.0).keys) == 3


def test_batches_beyond_the_limits_say_so(open_store):
    store = open_store(table(limits=RateLimits(min_cursor=0.0, max_cursor=3.0)))
    fill(store, 3)
    with refused(StoreTimeout, "3 samples"):
        store.table("t").sample(4, timeout_s=0.3)


@pytest.mark.parametrize("kind", ["uniform", "fifo"])
def test_priorities_that_nobody_uses_are_refused(open_store, kind):
    store = open_store(table(sampler=Selector(kind=kind)))
    fill(store, 2)
    batch = store.table("t").sample(2, 20.0)
    with refused(UsageError, "priorities (of table t)"):
        batch.ack(np.ones(2))
    batch.ack()
    assert len(store.table("t").sample(2, 20.0).keys) == 2


def test_priorities_of_a_remover_are_taken(open_store):
    remover = Selector(kind="prioritized", exponent=1.0)
    store = open_store(table(remover=remover, max_items=3))
    fill(store, 3)
    batch = store.table("t").sample(20, 20.0)
    batch.ack(1.0 * (batch.columns["number"] == 1))
    store.table("t").sample(1, 20.0)  # follows the acknowledgement to a server
    with store.writer("more", "t") as writer:
        writer.append({"number": 9})
        writer.insert("t", 1, 1.0)
    left = store.table("t").sample(100, 20.0).columns["number"].tolist()
    assert set(left) == {0, 2, 9}


@pytest.mark.parametrize(
    ("priorities", "message"),
    [
        (np.ones(3), "priorities (3)"),
        (np.ones((2, 1)), "priorities (shape [2, 1])"),
        (["a", "b"], "priorities ("),
    ],
)
def test_priorities_of_another_shape_are_refused(open_store, priorities, message):
    store = open_store(table(sampler=Selector(kind="prioritized")))
    fill(store, 2)

    def ack():
        store.table("t").sample(2, 20.0).ack(priorities)
        store.table("t").sample(2, 20.0)  # where a server's word is heard

    with refused(UsageError, message):
        ack()
