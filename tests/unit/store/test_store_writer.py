"""Writers of steps: what they count, and many items by one call."""

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import Column, RateLimits, Selector, StoreTimeout, TableConfig
from tests.refusals import refused


def queue(name, **fields):
    """Items come out in the order of their inserts."""
    return TableConfig(
        name=name,
        columns={"number": Column(dtype="int64")},
        sampler=Selector(kind="fifo"),
        max_times_sampled=1,
        **{"limits": RateLimits.queue(1000), "steps_per_chunk": 4, **fields},
    )


def numbers(*span):
    return {"number": np.arange(*span)}


def drawn(store, table, count):
    return store.table(table).sample(count, 20.0).columns["number"].tolist()


def test_append_tells_how_many_steps_it_took(open_store):
    with open_store(queue("t")).writer("a", "t") as writer:
        assert writer.append({"number": 7}) == 1
        assert writer.append(numbers(9)) == 9
        assert writer.append(numbers(0)) == 0
        assert writer.num_steps == 10


def test_an_item_is_made_of_each_new_step(open_store):
    store = open_store(queue("t", num_steps=3))
    with store.writer("a", "t") as writer:
        told = []
        for span in ((0, 2), (2, 4), (4, 5), (5, 5), (5, 12)):
            writer.append(numbers(*span))
            told.append(writer.insert_each("t", 3))
    assert told == [0, 2, 1, 0, 7]  # the first two steps end none
    assert drawn(store, "t", 10) == [[i, i + 1, i + 2] for i in range(10)]


def test_priorities_are_those_of_the_steps_that_items_end_with(open_store):
    by_priority = TableConfig(
        name="t",
        columns={"number": Column(dtype="int64")},
        sampler=Selector(kind="prioritized", exponent=1.0),
        num_steps=3,
    )
    store = open_store(by_priority)
    with store.writer("a", "t") as writer:
        writer.append(numbers(6))
        priorities = np.array([9, 9, 1, 4, 2, 3], np.float32)
        assert writer.insert_each("t", 3, priorities) == 4
        writer.append(numbers(6, 7))
        assert writer.insert_each("t", 3, 5) == 1
    batch = store.table("t").sample(60, 20.0)
    chances = dict(
        zip(batch.columns["number"][:, -1], batch.probabilities, strict=True)
    )
    expected = {2: 1 / 15, 3: 4 / 15, 4: 2 / 15, 5: 3 / 15, 6: 5 / 15}
    assert chances == pytest.approx(expected)


def test_items_may_lie_apart_and_be_counted(open_store):
    store = open_store(queue("t", num_steps=2))
    with store.writer("a", "t") as writer:
        writer.append(numbers(8))
        assert writer.insert_each("t", 2, count=3, stride=2) == 3
        assert writer.insert_each("t", 2, stride=3) == 3  # of every third step
        assert writer.insert_each("t", 2, count=1, sequence=0) == 1  # left out
    assert drawn(store, "t", 3) == [[2, 3], [4, 5], [6, 7]]
    assert drawn(store, "t", 3) == [[0, 1], [3, 4], [6, 7]]
    assert store.table("t").describe()["num_items"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count (0)"),
        ({"count": 9}, "count (9)"),
        ({"count": 8, "num_steps": 2}, "count (8)"),
        ({"count": 1, "num_steps": 9}, "num_steps (9)"),
        ({"stride": 0}, "stride (0)"),
        ({"priorities": np.ones(3)}, "priorities (3)"),
        ({"priorities": np.ones((8, 1))}, "priorities (shape [8, 1])"),
        ({"priorities": ["x"]}, "priorities ("),
    ],
)
def test_items_that_cannot_be_are_refused(open_store, arguments, message):
    store = open_store(queue("t"))
    with store.writer("a", "t") as writer:
        writer.append(numbers(8))
        with refused(UsageError, message):
            writer.insert_each("t", **arguments)
        assert writer.insert_each("t") == 8
    assert drawn(store, "t", 8) == list(range(8))


def test_many_items_wait_as_one_does(open_store):
    store = open_store(queue("t", limits=RateLimits.queue(3)))
    with store.writer("a", "t") as writer:
        writer.append(numbers(5))

        def insert():
            writer.insert_each("t", timeout_s=0.05)
            writer.flush(timeout_s=0.05)

        with refused(StoreTimeout, "samples"):
            insert()
        assert drawn(store, "t", 2) == [0, 1]
        assert writer.insert_each("t", sequence=0) == 5  # each once
    assert drawn(store, "t", 3) == [2, 3, 4]


def test_a_writer_keeps_the_steps_that_its_tables_need(open_store):
    store = open_store(queue("short", max_items=1), queue("long", num_steps=9))
    with store.writer("a", "short") as writer:
        for number in range(30):
            writer.append({"number": number})
            writer.insert("short", 1)
        writer.insert("long", 9)
    assert drawn(store, "long", 1) == [list(range(21, 30))]
