"""What a caller may get wrong in a store's configs and calls: one line each."""

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import (
    Column,
    RateLimits,
    Sampler,
    Selector,
    Store,
    StoreConfig,
    TableConfig,
)
from tests.refusals import refused

NUMBER = Column(dtype="float32")
NAN = float("nan")


def table(**fields):
    return TableConfig(**{"name": "t", "columns": {"x": NUMBER}, **fields})


def column(*names):
    return table(columns=dict.fromkeys(names, NUMBER))


STEP = {"x": np.float32(1.0)}


def write(store):
    """A writer with a step."""
    writer = store.writer("w", "t")
    writer.append(STEP)
    return writer


@pytest.mark.parametrize(
    "dtype", ["f4", np.float32, np.dtype("float32"), ">f4", "single"]
)
def test_a_column_has_the_name_of_its_dtype_and_a_tuple(dtype):
    made = Column(dtype=dtype, shape=[2, 3])
    assert made == Column(dtype="float32", shape=(2, 3))
    assert (
        Store(StoreConfig.of([table(columns={"x": made})])).table("t").config.step_bytes
        == 24
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column(dtype="longdouble"), "dtype (longdouble)"),
        (lambda: Column(dtype="uint8", shape=84), "shape (84)"),
        (lambda: Column(dtype="uint8", shape=(0,)), "shape (0)"),
        (lambda: Column(dtype="uint8", shape=(2.5,)), "shape (2.5)"),
        (lambda: column("a", "a/b"), "column (a/b)"),
        (lambda: column("a//b"), "column (a//b)"),
        (lambda: table(columns={"x": "f4"}), "columns.x ('f4')"),
        (lambda: table(columns=["x"]), "columns (['x'])"),
        (lambda: table(sampler="fifo"), "sampler ('fifo')"),
        (lambda: table(max_items=1e6), "max_items (1000000.0)"),
        (
            lambda: RateLimits.ratio(4.0, min_size=9, error_buffer=1.0),
            "max_cursor (37.0)",
        ),
        (lambda: StoreConfig(key_file="k.pem"), "key_file (k.pem)"),
        (lambda: StoreConfig(certificate_file="c.pem"), "certificate_file (c.pem)"),
        (lambda: StoreConfig.of(table()), "tables ("),
        (lambda: Store(StoreConfig()), "tables (none)"),
        (lambda: StoreConfig.of([table(), table()]), "table (t)"),
        (lambda: Store(StoreConfig.of([table()], memory_bytes=9)), "memory_bytes (9"),
        (lambda: table(max_bytes=3), "max_bytes (3)"),
        (lambda: Store([table()]), "config ("),
        (lambda: Store(StoreConfig.of(["t"])), "tables ('t')"),
        (
            lambda: Store(StoreConfig.of([table()], memory_bytes=2e9)),
            "memory_bytes (2000000000.0)",
        ),
    ],
)
def test_configs_that_cannot_be_are_refused_where_they_are_built(make, message):
    with refused(UsageError, message) as refusal:
        make()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.writer("", "t"), "name ()"),
        (lambda s: s.writer(3, "t"), "name (3)"),
        (lambda s: s.writer("a", "t", max_item_steps=-1), "max_item_steps (-1)"),
        (lambda s: s.table("t").sample(2.0), "num_samples (2.0)"),
        (lambda s: s.table("t").set_capacity(2.5), "max_items (2.5)"),
        (lambda s: s.table(["t"]), "table (list)"),
        (lambda s: s.table("tt"), "did you mean"),
        (lambda s: s.table("t").sample(0), "num_samples (0)"),
        (lambda s: s.writer("w", "t").insert("t", 1), "num_steps (1)"),
        (lambda s: write(s).insert("nothing", 1), "table (nothing)"),
        (lambda s: s.table("t").sample(1, "x"), "timeout_s (x)"),
        (lambda s: s.table("t").sample(1, NAN), "timeout_s (nan)"),
        (lambda s: s.flush([1]), "timeout_s ([1])"),
        (lambda s: write(s).append(None), "columns (NoneType)"),
        (lambda s: write(s).append(STEP, "1"), "timeout_s (1)"),
        (lambda s: write(s).insert("t", None), "num_steps (None)"),
        (lambda s: write(s).insert(["t"], 1), "table (['t'])"),
        (lambda s: write(s).insert_each("t", None), "num_steps (None)"),
        (lambda s: write(s).insert("t", 1, timeout_s="1"), "timeout_s (1)"),
    ],
)
def test_calls_that_cannot_be_are_refused(open_store, call, message):
    with refused(UsageError, message) as refusal:
        call(open_store(table()))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_steps": 1}, "num_steps (1)"),
        ({"num_steps": -1}, "num_steps (-1)"),
        ({"priority": "x"}, "item (2, 'x', "),
        ({"priority": -1.0}, "priority (-1)"),
        ({"priority": 1e39}, "priority (1e+39)"),
        ({"sequence": -1}, "-1)"),
    ],
)
def test_an_item_is_refused_at_once_and_the_writer_goes_on(
    open_store, arguments, message
):
    store = open_store(table(num_steps=2))
    with store.writer("a", "t") as writer:
        writer.append({"x": np.arange(2, dtype=np.float32)})
        with refused(UsageError, message):
            writer.insert("t", **{"num_steps": 2, **arguments})
        many = {"priorities" if k == "priority" else k: v for k, v in arguments.items()}
        with pytest.raises(UsageError):
            writer.insert_each("t", **{"num_steps": 2, **many})
        writer.insert("t", 2)
        writer.flush()
    assert store.table("t").describe()["num_items"] == 1


def test_a_batch_that_is_refused_leaves_its_sampler_in_use(open_store):
    store = open_store(table(sampler=Selector(kind="prioritized")))
    store.table("t").insert("a", 0, {"x": np.arange(3, dtype=np.float32)})
    with store.table("t").sampler(2) as sampler:
        batch = sampler.sample(20.0)
        for priorities in (np.ones(3), -np.ones(2), np.array([1.0, np.nan])):
            with refused(UsageError, "priorit"):
                batch.ack(priorities)
        batch.ack([1.0, 2.0])
        for call in (batch.ack, lambda: sampler.give_back(batch)):
            with refused(UsageError, "lease ("):
                call()
        for _ in range(5):
            sampler.sample(20.0).ack()


def test_short_calls_go_on_where_the_store_refused_one(open_store, monkeypatch):
    monkeypatch.setattr(Sampler, "_check_lent", lambda self, lease: None)
    asked = open_store(table()).table("t")
    asked.insert("a", 0, {"x": np.float32(5)})
    batch = asked.sample(1, 20.0)
    batch.ack()

    def ack_again():
        batch.ack()
        asked.sample(1, 20.0)  # where a server's word is heard

    with refused(UsageError, "lease ("):
        ack_again()
    assert asked.sample(1, 20.0).columns["x"].tolist() == [5.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1, "x"], object), "column (x)"),
        (np.array([1.5, 300.0], object), "column (x)"),
        (np.array(["1", "2"]), "column (x)"),
        (np.zeros(2, ">f8"), "(x, float64)"),
        (np.zeros(2, np.complex64), "(x, complex64)"),
        (np.zeros(2, bool), "(x, bool)"),
    ],
)
def test_no_array_is_converted_on_the_way(open_store, value, message):
    with open_store(table(columns={"x": Column(dtype="f4", shape=(2,))})).writer(
        "a", "t"
    ) as writer:
        with refused(UsageError, message):
            writer.append({"x": value})
        writer.append({"x": np.array([1.0, 2.0], ">f4")})
        writer.insert("t", 1)
        writer.flush()
