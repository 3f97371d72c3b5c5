"""Batches that are not copied: arrays in the store's own memory."""

import gc
import threading

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import Column, RateLimits, Selector, StoreTimeout, TableConfig

# Of stores in memory that this host maps.
pytestmark = pytest.mark.parametrize("open_store", ["here", "host"], indirect=True)

SIZE = 4096
CHUNK_BYTES = SIZE + 64


def config(**fields) -> TableConfig:
    return TableConfig(
        name="large",
        columns={
            "data": Column(dtype="uint8", shape=(SIZE,)),
            "extra/number": Column(dtype="int64"),
        },
        **{"steps_per_chunk": 1, **fields},
    )


def queue(**fields) -> TableConfig:
    return config(
        sampler=Selector(kind="fifo"),
        max_times_sampled=1,
        limits=RateLimits.queue(1000),
        **fields,
    )


def step(number: int) -> dict:
    return {
        "data": np.full(SIZE, number % 251, np.uint8),
        "extra": {"number": np.int64(number)},
    }


def write(store, numbers, writer: str = "a", **arguments) -> None:
    with store.writer(writer, "large") as sender:
        for number in numbers:
            sender.append(step(number), **arguments)
            sender.insert("large", 1, **arguments)


def numbers_of(batch) -> list[int]:
    numbers = [int(one) for one in batch.columns["extra"]["number"]]
    for number, data in zip(numbers, batch.columns["data"], strict=True):
        assert (data == number % 251).all()
    return numbers


def test_a_view_shows_what_was_written(open_store):
    store = open_store(queue())
    write(store, range(5))
    batch = store.table("large").sampler(5, copy=False).sample()
    assert numbers_of(batch) == list(range(5))
    data = batch.columns["data"][0]
    assert data.shape == (SIZE,)
    assert not data.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


def test_a_view_of_several_steps_is_one_array(open_store):
    store = open_store(queue(num_steps=3, steps_per_chunk=6))
    with store.writer("a", "large", max_item_steps=3) as writer:
        for number in range(12):
            writer.append(step(number))
            if number % 3 == 2:
                writer.insert("large", 3)
    batch = store.table("large").sampler(4, copy=False).sample()
    assert [one.shape for one in batch.columns["data"]] == [(3, SIZE)] * 4
    assert [one.tolist() for one in batch.columns["extra"]["number"]] == [
        [first, first + 1, first + 2] for first in (0, 3, 6, 9)
    ]


@pytest.mark.parametrize("ends", ["ack", "give_back", "neither"])
def test_views_stay_while_writers_push_the_table_through_its_capacity(open_store, ends):
    store = open_store(config(max_items=8), memory_bytes=24 * CHUNK_BYTES)
    write(store, range(8))
    sampler = store.table("large").sampler(4, copy=False, num_ahead=0)
    batch = sampler.sample()
    numbers = numbers_of(batch)
    if ends == "ack":
        batch.ack()
    elif ends == "give_back":
        sampler.give_back(batch)
    write(store, range(8, 400))
    assert set(numbers_of(sampler.sample())) <= set(range(392, 400))
    assert numbers_of(batch) == numbers
    one = batch.columns["data"][2]
    del sampler, batch
    gc.collect()
    write(store, range(400, 800))
    assert (one == numbers[2] % 251).all()


def test_memory_comes_back_with_the_last_array(open_store):
    store = open_store(queue(), memory_bytes=6 * CHUNK_BYTES)
    write(store, range(6))
    sampler = store.table("large").sampler(6, copy=False, num_ahead=0)
    batch = sampler.sample()
    batch.ack()  # the items are gone, and arrays alone hold all memory
    last = batch.columns["data"][5]
    del batch
    with pytest.raises(StoreTimeout, match="append waited"):
        write(store, [7], timeout_s=0.3)
    assert (last == 5).all()
    del last
    write(store, [7], timeout_s=300.0)
    assert store.table("large").describe()["num_items"] == 1


def test_arrays_may_die_in_any_thread(open_store):
    store = open_store(config(max_items=4), memory_bytes=64 * CHUNK_BYTES)
    write(store, range(4))
    sampler = store.table("large").sampler(2, copy=False)
    handed: list = []
    done = threading.Event()

    def drop() -> None:
        while not done.is_set() or handed:
            if handed:
                arrays = handed.pop()
                assert (arrays[0] == arrays[0][0]).all()

    dropper = threading.Thread(target=drop)
    dropper.start()
    for number in range(4, 300):
        batch = sampler.sample()
        handed.append(batch.columns["data"])
        batch.ack()
        del batch
        write(store, [number], timeout_s=300.0)
    done.set()
    dropper.join()


def test_a_sampler_that_is_gone_leaves_its_views(open_store):
    store = open_store(queue())
    write(store, range(3))
    batch = store.table("large").sampler(3, copy=False).sample()
    gc.collect()
    batch.ack()
    write(store, range(3, 100))
    assert numbers_of(batch) == [0, 1, 2]


def test_what_cannot_be_viewed_is_refused(open_store):
    store = open_store(queue(num_steps=2, steps_per_chunk=4))
    with store.writer("a", "large", max_item_steps=4) as writer:
        for number in range(6):
            writer.append(step(number))
        writer.insert_each("large", 2, count=2)  # steps 3 and 4, 4 and 5
    table = store.table("large")
    viewer = table.sampler(2, copy=False, num_ahead=0)
    with pytest.raises(UsageError, match=r"copy \(False\) .* over several chunks of 4"):
        viewer.sample()
    batch = table.sampler(2, num_ahead=0).sample(10.0)  # it was given back
    assert batch.columns["extra"]["number"].tolist() == [[3, 4], [4, 5]]

    many = open_store(config(num_steps=5, steps_per_chunk=4)).table("large")
    with pytest.raises(
        UsageError, match=r"copy \(False\) .* 5 steps lies over several"
    ):
        many.sampler(1, copy=False)
    stacked = TableConfig(name="s", columns={"x": Column(dtype="uint8", stack=2)})
    with pytest.raises(UsageError, match=r"copy \(False\) .* stacked columns"):
        open_store(stacked).table("s").sampler(1, copy=False)


def test_priorities_and_uses_are_as_with_copies(open_store):
    store = open_store(config(sampler=Selector(kind="prioritized", exponent=1.0)))
    write(store, range(4))
    sampler = store.table("large").sampler(4, copy=False, num_ahead=0)
    batch = sampler.sample()
    assert sorted(numbers_of(batch)) == [0, 1, 2, 3]
    batch.ack(np.array([float(number == 2) for number in numbers_of(batch)]))
    assert numbers_of(sampler.sample()) == [2] * 4


@pytest.mark.parametrize("copy", [True, False])
def test_torch_takes_columns_without_a_copy(open_store, copy):
    torch = pytest.importorskip("torch")
    store = open_store(queue())
    write(store, range(2))
    batch = store.table("large").sampler(2, copy=copy).sample()
    data = batch.columns["data"]
    for array in [data] if copy else data:
        tensor = torch.from_dlpack(array)
        assert tensor.data_ptr() == array.ctypes.data
        np.testing.assert_array_equal(tensor.numpy(), array)
