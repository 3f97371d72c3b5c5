"""Tables of a store: the same behaviour in one process and through each server."""

import dataclasses
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
)
from tests.refusals import refused

STEP = {
    "pixels": Column(dtype="uint8", shape=(3, 4)),
    "extra/reward": Column(dtype="float32"),
    "extra/done": Column(dtype="bool"),
}


def step(value):
    return {
        "pixels": np.full((3, 4), value, np.uint8),
        "extra": {"reward": value / 2, "done": value % 2 == 0},
    }


def numbers(reward, done):
    return step(2) | {"extra": {"reward": reward, "done": done}}


def steps(values):
    each = [step(value) for value in values]
    return {
        "pixels": np.stack([one["pixels"] for one in each]),
        "extra": {
            "reward": np.array([one["extra"]["reward"] for one in each], np.float32),
            "done": np.array([one["extra"]["done"] for one in each]),
        },
    }


def values_of(batch):
    """The values of a batch, of which every column and element must tell the same."""
    pixels = batch.columns["pixels"]
    flat = pixels.reshape(-1, 12)
    assert (flat == flat[:, :1]).all()
    values = pixels[..., 0, 0]
    np.testing.assert_array_equal(batch.columns["extra"]["reward"], values / 2)
    np.testing.assert_array_equal(batch.columns["extra"]["done"], values % 2 == 0)
    return values.tolist()


def config(name="replay", **fields):
    return TableConfig(name=name, columns=STEP, steps_per_chunk=4, **fields)


def queue(name="queue", size=1000, **fields):
    return config(
        name,
        sampler=Selector(kind="fifo"),
        max_times_sampled=1,
        limits=RateLimits.queue(size),
        **fields,
    )


def fill(store, table, values, **arguments):
    with store.writer("filler", table) as writer:
        for value in values:
            writer.append(step(value))
            writer.insert(table, 1, **arguments)


def test_steps_come_out_as_they_went_in(open_store):
    store = open_store(queue())
    table = store.table("queue")
    table.insert("a", 0, step(1))
    table.insert("a", 1, steps([2, 3, 4]), np.array([1.0, 2.0, 3.0]))
    first = table.sample(3)
    second = table.sample(1)
    assert values_of(first) == [1, 2, 3]
    assert values_of(second) == [4]
    assert first.columns["pixels"].dtype == np.uint8
    assert first.columns["extra"]["done"].dtype == np.bool_
    assert first.probabilities.tolist() == [1.0] * 3
    assert second.lease > first.lease


def test_batches_keep_their_arrays_while_they_are_held(open_store):
    store = open_store(queue())
    fill(store, "queue", range(60))
    sampler = store.table("queue").sampler(5)
    held = [sampler.sample() for _ in range(4)]
    del sampler
    assert [values_of(batch) for batch in held] == [
        list(range(i, i + 5)) for i in range(0, 20, 5)
    ]


def test_what_was_inserted_before_is_left_out(open_store):
    store = open_store(queue())
    table = store.table("queue")
    table.insert("a", 0, steps([0, 1, 2]))
    table.insert("a", 1, steps([8, 9, 3]))
    table.insert("a", 3, step(8))
    assert values_of(table.sample(4)) == [0, 1, 2, 3]
    table.insert("b", 0, step(4))
    assert values_of(table.sample(1)) == [4]


def test_a_writer_goes_on_where_its_last_client_ended(open_store):
    store = open_store(queue())
    fill(store, "queue", [1, 2, 3])
    with store.writer("filler", "queue") as writer:
        assert writer.next_sequence == 3
        with refused(UsageError, "filler"):
            store.writer("filler", "queue")


def test_items_of_several_steps_share_them_between_tables(open_store):
    store = open_store(
        queue("short", num_steps=2), queue("long", num_steps=5), queue("other")
    )
    with store.writer("a", "short", max_item_steps=5) as writer:
        for value in range(20):
            writer.append(step(value))
            if value >= 1:
                writer.insert("short", 2)
            if value >= 4 and value % 5 == 4:
                writer.insert("long", 5)
    short = values_of(store.table("short").sample(19))
    assert short == [[i, i + 1] for i in range(19)]
    long = values_of(store.table("long").sample(4))
    assert long == [list(range(i, i + 5)) for i in (0, 5, 10, 15)]


def test_longer_items_are_drawn_in_slices(open_store):
    store = open_store(config(num_steps=3))
    with store.writer("a", "replay", max_item_steps=10) as writer:
        writer.append(steps(range(10)))
        writer.insert("replay", 10)
    drawn = values_of(store.table("replay").sample(400))
    assert all(row == list(range(row[0], row[0] + 3)) for row in drawn)
    assert {row[0] for row in drawn} == set(range(8))


def test_priorities_decide_what_is_drawn(open_store):
    store = open_store(config(sampler=Selector(kind="prioritized", exponent=1.0)))
    fill(store, "replay", range(8), priority=1.0)
    table = store.table("replay")
    batch = table.sample(8)
    assert sorted(values_of(batch)) == list(range(8))  # one from each eighth
    batch.ack(np.array([float(value == 5) for value in values_of(batch)]))
    # By the same sampler: only its own requests are in order.
    again = table.sample(8)
    assert values_of(again) == [5] * 8
    assert again.probabilities.tolist() == [1.0] * 8


def test_importance_weights_are_those_of_the_paper(open_store):
    store = open_store(config(sampler=Selector(kind="prioritized", exponent=1.0)))
    fill(store, "replay", [1], priority=1.0)
    fill(store, "replay", [3], priority=3.0)
    batch = store.table("replay").sample(2)
    # N = 2, P = 1/4 and 3/4: (2 / 4) ** -0.5 and (6 / 4) ** -0.5, over the greater.
    expected = {1: 1.0, 3: (1 / 3) ** 0.5}
    weights = batch.importance_weights(0.5)
    for value, weight in zip(values_of(batch), weights, strict=True):
        assert weight == pytest.approx(expected[value])


def test_uses_are_counted_when_they_are_acknowledged(open_store):
    store = open_store(queue())
    fill(store, "queue", range(4))
    sampler = store.table("queue").sampler(2, num_ahead=0)
    batch = sampler.sample()
    sampler.give_back(batch)
    again = sampler.sample()
    assert sorted(values_of(again)) == sorted(values_of(batch))
    again.ack()
    sampler.sample().ack()
    with pytest.raises(StoreTimeout):
        sampler.sample(timeout_s=0.05)


def test_waits_say_what_they_wait_for(open_store):
    store = open_store(queue(size=2))
    table = store.table("queue")
    with refused(StoreTimeout, "queue"):
        table.sample(3, timeout_s=0.05)
    fill(store, "queue", [1, 2])
    with store.writer("b", "queue") as writer:
        writer.append(step(3))

        def insert():
            writer.insert("queue", 1, sequence=0, timeout_s=0.05)
            writer.flush(timeout_s=0.05)

        with refused(StoreTimeout, "1 samples"):
            insert()
        batch = table.sample(1, timeout_s=300.0)
        writer.insert("queue", 1, sequence=0)
        writer.flush()
    assert values_of(batch) == [1]
    assert values_of(table.sample(2, timeout_s=300.0)) == [2, 3]


def test_the_capacity_changes_at_run_time(open_store):
    store = open_store(config(max_items=6))
    table = store.table("replay")
    fill(store, "replay", range(9))
    assert table.describe()["num_items"] == 6
    table.set_capacity(4)
    assert set(values_of(table.sample(50))) == {5, 6, 7, 8}


def test_a_capacity_keeps_what_is_not_given(open_store):
    limits = RateLimits(samples_per_insert=2.0, min_size=3, max_cursor=50.0)
    store = open_store(config(max_items=6, limits=limits))
    table = store.table("replay")

    def capacity():
        told = table.describe()
        return told["max_items"], told["max_bytes"]

    fill(store, "replay", range(8))
    assert capacity() == (6, None)
    assert table.describe()["limits"] == dataclasses.asdict(limits)
    table.set_capacity(max_bytes=17 * 4 + 5)
    assert capacity() == (6, 17 * 4)  # of whole steps
    assert table.describe()["num_items"] == 4
    table.set_capacity(max_items=5)
    assert capacity() == (5, 17 * 4)
    fill(store, "replay", range(8))
    assert table.describe()["num_items"] == 4
    table.set_capacity(max_bytes=1 << 40)
    fill(store, "replay", range(8))
    assert table.describe()["num_items"] == 5
    for given, message in (
        ({}, "capacity (None)"),
        ({"max_items": 0}, "max_items (0)"),
        ({"max_bytes": 16}, "max_bytes (16)"),
    ):
        with refused(UsageError, message):
            table.set_capacity(**given)
    assert capacity()[0] == 5


def test_memory_is_bounded_and_the_oldest_make_room(open_store):
    store = open_store(config(), memory_bytes=1 << 14)
    fill(store, "replay", [value % 256 for value in range(3000)])
    held = store.table("replay").describe()
    assert 300 < held["num_items"] < 1000
    assert held["num_bytes"] <= 1 << 14
    newest = {value % 256 for value in range(3000 - held["num_items"], 3000)}
    assert set(values_of(store.table("replay").sample(2000))) <= newest


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pixels": np.zeros((3, 4), np.uint8)}, "column (extra/reward)"),
        (step(1) | {"more": 1}, "more)"),
        (step(1) | {"pixels": np.zeros((3, 5), np.uint8)}, "shape [3, 5])"),
        (
            step(1) | {"pixels": np.zeros((3, 4), np.int8)},
            "int8)",
        ),
        (step(1) | {"pixels": "x"}, "column (pixels)"),
        (numbers(1.0, 0.0), "extra/done, 0.0)"),
        (numbers("1", False), "column (extra/reward)"),
        (steps([1, 2]) | {"extra": step(1)["extra"]}, "column"),
        ([1], "columns ("),
    ],
)
def test_steps_that_do_not_fit_are_refused(open_store, columns, message):
    store = open_store(queue())
    with store.writer("a", "queue") as writer:
        with refused(UsageError, message):
            writer.append(columns)
        writer.append(step(7))
        writer.insert("queue", 1)
    assert values_of(store.table("queue").sample(1)) == [7]


@pytest.mark.parametrize(
    ("reward", "done"), [(1.0, True), (1, 1), (np.float64(1), np.bool_(True))]
)
def test_numbers_of_python_and_doubles_of_numpy_are_converted(open_store, reward, done):
    store = open_store(queue())
    with store.writer("a", "queue") as writer:
        writer.append(numbers(reward, done))
        writer.insert("queue", 1)
    assert values_of(store.table("queue").sample(1)) == [2]


def test_numbers_that_a_column_cannot_hold_are_refused(open_store):
    config = TableConfig(name="bytes", columns={"count": Column(dtype="uint8")})
    with open_store(config).writer("a", "bytes") as writer:
        for number in (256, 1.5):
            with refused(UsageError, f"(count, {number})"):
                writer.append({"count": number})
        writer.append({"count": 255})


@pytest.mark.parametrize("priority", [-1.0, float("nan"), float("inf")])
def test_priorities_that_are_no_numbers_are_refused(open_store, priority):
    store = open_store(config(sampler=Selector(kind="prioritized")))
    writer = store.writer("bad", "replay")
    writer.append(step(1))

    def insert():
        writer.insert("replay", 1, priority)
        writer.flush()

    with refused(UsageError, "priority ("):
        insert()
    fill(store, "replay", [2])
    batch = store.table("replay").sample(1)
    assert values_of(batch) == [2]

    def ack():
        batch.ack(np.array([priority]))
        store.table("replay").sample(1)

    with refused(UsageError, "priority ("):
        ack()


def test_a_closed_store_tells_those_who_wait():
    store = Store(StoreConfig.of([queue()]))
    errors = []

    def wait():
        try:
            store.table("queue").sample(1)
        except UsageError as error:
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    store._backend.close()
    waiter.join(900)
    assert ["is closed" in str(error) for error in errors] == [True]
