"""What a caller may get wrong in a store's configs and calls: one line each."""

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import (
    Column,
    RateLimits,
    Sampler,
    Selector,
    StepWriter,
    Store,
    StoreConfig,
    TableConfig,
)

NUMBER = Column(dtype="float32")
NAN = float("nan")


def table(**fields) -> TableConfig:
    return TableConfig(**{"name": "t", "columns": {"x": NUMBER}, **fields})


def column(*names: str) -> TableConfig:
    return table(columns=dict.fromkeys(names, NUMBER))


STEP = {"x": np.float32(1.0)}


def write(store: Store) -> StepWriter:
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
        (lambda: Column(dtype="longdouble"), r"dtype \(longdouble\) must be a bool"),
        (lambda: Column(dtype="uint8", shape=84), r"shape \(84\) must be a tuple"),
        (lambda: Column(dtype="uint8", shape=(0,)), r"shape \(0\) must be 1 to"),
        (lambda: Column(dtype="uint8", shape=(2.5,)), r"shape \(2.5\) must be a whole"),
        (lambda: column("a", "a/b"), r"column \(a/b\) must not lie in column a"),
        (lambda: column("a//b"), r"column \(a//b\) must have a name between"),
        (lambda: table(columns={"x": "f4"}), r"columns.x \('f4'\) must be a Column"),
        (lambda: table(columns=["x"]), r"columns \(\['x'\]\) must be a dict"),
        (lambda: table(sampler="fifo"), r"sampler \('fifo'\) must be a Selector"),
        (lambda: table(max_items=1e6), r"max_items \(1000000.0\) must be a whole num"),
        (lambda: table(steps_per_chunk=-1), r"steps_per_chunk \(-1\) must be 1 to"),
        (lambda: RateLimits(min_size=-1), r"min_size \(-1\) must be 1 to"),
        (
            lambda: RateLimits(samples_per_insert=-1.0),
            r"samples_per_insert \(-1.0\) must be finite and above 0; say how often",
        ),
        (lambda: RateLimits(min_cursor=NAN), r"min_cursor \(nan\) must be finite;"),
        (
            lambda: RateLimits.ratio(4.0, min_size=9, error_buffer=1.0),
            r"max_cursor \(37.0\) must be at least 4 above min_cursor \(35\), .* raise",
        ),
        (lambda: Selector(kind="lifo"), r'kind \("lifo"\)'),
        (lambda: Selector(exponent=-0.5), r"exponent \(-0.5\) must be finite and at"),
        (lambda: Selector(exponent=NAN), r"exponent \(nan\) must be finite and at"),
        (lambda: StoreConfig(key_file="k.pem"), r"key_file \(k.pem\) must be left out"),
        (
            lambda: StoreConfig(certificate_file="c.pem"),
            r"certificate_file \(c.pem\) must be left out without listen",
        ),
        (lambda: StoreConfig.of(table()), r"tables \(.*\) must be a list"),
        (lambda: Store(StoreConfig()), r"tables \(none\) must be at least one"),
        (lambda: Store([table()]), r"config \(.*\) must be a StoreConfig"),
        (lambda: Store(StoreConfig.of(["t"])), r"tables \('t'\) must be a TableConfig"),
        (
            lambda: Store(StoreConfig.of([table()], memory_bytes=2e9)),
            "memory_bytes .* a whole number",
        ),
        (
            lambda: Store(StoreConfig.of([table()], seed=-1)),
            r"seed \(-1\) must be 0 to",
        ),
    ],
)
def test_configs_that_cannot_be_are_refused_where_they_are_built(make, message):
    with pytest.raises(UsageError, match=message) as refusal:
        make()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.writer("", "t"), r"name \(\) must be text"),
        (lambda s: s.writer(3, "t"), r"name \(3\) must be text"),
        (
            lambda s: s.writer("a", "t", max_item_steps=-1),
            r"max_item_steps \(-1\) m",
        ),
        (lambda s: s.table("t").sample(2.0), r"num_samples \(2.0\) must be a whole"),
        (
            lambda s: s.table("t").set_capacity(2.5),
            r"max_items \(2.5\) must be a",
        ),
        (lambda s: s.table(["t"]), r"table \(list\) must be text"),
        (lambda s: s.table("t").sample(1, "x"), r"timeout_s \(x\) must be a number"),
        (lambda s: s.table("t").sample(1, NAN), r"timeout_s \(nan\) must be a number"),
        (lambda s: s.flush([1]), r"timeout_s \(\[1\]\) must be a number"),
        (lambda s: write(s).append(None), r"columns \(NoneType\) must be a dict"),
        (lambda s: write(s).append(STEP, "1"), r"timeout_s \(1\) must be a number"),
        (lambda s: write(s).insert("t", None), r"num_steps \(None\) must be a whole"),
        (lambda s: write(s).insert(["t"], 1), r"table \(\['t'\]\) must have this"),
        (lambda s: write(s).insert_each("t", None), r"num_steps \(None\) must be a wh"),
        (
            lambda s: write(s).insert("t", 1, timeout_s="1"),
            r"timeout_s \(1\) must be a number",
        ),
        (lambda s: s.table("t").erase([1.5]), "keys .* must be whole numbers"),
        (
            lambda s: s.table("t").erase(np.array([1, 2**63], np.uint64)),
            r"keys \(9223372036854775808\) must be below 2\^63",
        ),
    ],
)
def test_calls_that_cannot_be_are_refused(open_store, call, message):
    with pytest.raises(UsageError, match=message) as refusal:
        call(open_store(table()))
    assert "\n" not in str(refusal.value)


def test_a_key_may_be_one(open_store):
    store = open_store(table(sampler=Selector(kind="prioritized", exponent=1.0)))
    store.table("t").insert("a", 0, {"x": np.arange(3, dtype=np.float32)})
    batch = store.table("t").sample(1, 20.0)
    store.table("t").set_priorities(batch.keys[0], 0)
    with pytest.raises(UsageError, match=r"priorities \(2\) must be 1, one for each"):
        store.table("t").set_priorities(batch.keys, np.ones(2))
    assert batch.columns["x"][0] not in store.table("t").sample(60, 20.0).columns["x"]
    assert store.table("t").erase(batch.keys[0]) == 1
    store.table("t").set_capacity(np.int64(2))
    assert store.table("t").describe()["max_items"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_steps": 1}, r"num_steps \(1\) must be at least the table's 2"),
        ({"num_steps": -1}, r"num_steps \(-1\) must be at least the table's 2"),
        ({"priority": "x"}, r"item \(2, 'x', .*\) must have numbers"),
        ({"priority": -1.0}, r"priority \(-1\) must be 0 to 3.4e38"),
        ({"priority": 1e39}, r"priority \(1e\+39\) must be 0 to 3.4e38"),
        ({"sequence": -1}, r"item \(.*-1\) must have numbers, 0 or more"),
    ],
)
def test_an_item_is_refused_at_once_and_the_writer_goes_on(
    open_store, arguments, message
):
    store = open_store(table(num_steps=2))
    with store.writer("a", "t") as writer:
        writer.append({"x": np.arange(2, dtype=np.float32)})
        with pytest.raises(UsageError, match=message):
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
            with pytest.raises(UsageError, match="must be"):
                batch.ack(priorities)
        batch.ack([1.0, 2.0])
        for call in (batch.ack, lambda: sampler.give_back(batch)):
            with pytest.raises(UsageError, match=r"lease \(\d+\) must be one that is"):
                call()
        for _ in range(5):
            sampler.sample(20.0).ack()


def test_short_calls_go_on_where_the_store_refused_one(open_store, monkeypatch):
    monkeypatch.setattr(Sampler, "_check_lent", lambda self, lease: None)
    asked = open_store(table()).table("t")
    asked.insert("a", 0, {"x": np.float32(5)})
    batch = asked.sample(1, 20.0)
    batch.ack()

    def ack_again() -> None:
        batch.ack()
        asked.sample(1, 20.0)  # where a server's word is heard

    with pytest.raises(UsageError, match=r"lease \(\d+\) must be one that is"):
        ack_again()
    assert asked.sample(1, 20.0).columns["x"].tolist() == [5.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1, "x"], object), "must be an array on the CPU"),
        (np.array([1.5, 300.0], object), "must be an array on the CPU"),
        (np.array(["1", "2"]), "must be an array on the CPU"),
        (np.zeros(2, ">f8"), r"\(x, float64\) must be float32; convert it"),
        (np.zeros(2, np.complex64), r"\(x, complex64\) must be float32; convert it"),
        (np.zeros(2, bool), r"\(x, bool\) must be float32; convert it"),
    ],
)
def test_no_array_is_converted_on_the_way(open_store, value, message):
    with open_store(table(columns={"x": Column(dtype="f4", shape=(2,))})).writer(
        "a", "t"
    ) as writer:
        with pytest.raises(UsageError, match=message):
            writer.append({"x": value})
        writer.append({"x": np.array([1.0, 2.0], ">f4")})
        writer.insert("t", 1)
        writer.flush()
