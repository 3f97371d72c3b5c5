"""Stacked frames: each is stored once, and a sample has as many as its column says."""

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import Column, RateLimits, Selector, TableConfig


def config(name="stacked", **fields) -> TableConfig:
    return TableConfig(
        name=name,
        columns={
            "pixels": Column(dtype="uint8", shape=(2,), stack=3),
            "step": Column(dtype="int32"),
        },
        **{
            "sampler": Selector(kind="fifo"),
            "max_times_sampled": 1,
            "limits": RateLimits.queue(100),
            "steps_per_chunk": 2,
            **fields,
        },
    )


def step(number: int) -> dict:
    return {"pixels": np.full(2, number, np.uint8), "step": np.int32(number)}


def frames_of(batch) -> list:
    pixels = batch.columns["pixels"]
    assert (pixels[..., 0] == pixels[..., 1]).all()
    return pixels[..., 0].tolist()


def test_a_step_has_the_frames_before_it_in_its_episode(open_store):
    store = open_store(config())
    with store.writer("a", "stacked") as writer:
        for number in range(7):
            writer.append(step(number), is_first=number in (0, 4))
            writer.insert("stacked", 1)
    batch = store.table("stacked").sample(7)
    assert batch.columns["pixels"].shape == (7, 3, 2)
    assert batch.columns["step"].tolist() == list(range(7))
    assert frames_of(batch) == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [4, 4, 4],
        [4, 4, 5],
        [4, 5, 6],
    ]


def test_every_step_of_an_item_has_its_own_stack(open_store):
    store = open_store(config(num_steps=3))
    numbers = np.arange(6)
    with store.writer("a", "stacked", max_item_steps=3) as writer:
        writer.append(
            {
                "pixels": np.repeat(numbers, 2).reshape(6, 2).astype(np.uint8),
                "step": numbers.astype(np.int32),
            },
            is_first=numbers == 0,
        )
        writer.insert_each("stacked", 3)
    batch = store.table("stacked").sample(4)
    assert batch.columns["pixels"].shape == (4, 3, 3, 2)
    stacks = [[max(0, number - back) for back in (2, 1, 0)] for number in range(6)]
    assert frames_of(batch) == [stacks[first : first + 3] for first in range(4)]


def test_frames_stay_while_an_item_shows_them(open_store):
    # Twelve chunks, most of which nothing but the context of the one item holds.
    store = open_store(
        config(max_times_sampled=0, max_items=1, limits=RateLimits()),
        config("other", max_items=1, max_times_sampled=0, limits=RateLimits()),
        memory_bytes=64 * 3 * 12,
    )
    with store.writer("a", "stacked") as writer:
        for number in range(1, 200):
            writer.append(step(number), is_first=number == 1)
            if number == 5:
                writer.insert("stacked", 1)
            if number > 5:
                writer.insert("other", 1)
    assert frames_of(store.table("stacked").sample(1)) == [[3, 4, 5]]
    assert frames_of(store.table("other").sample(1)) == [[197, 198, 199]]


def test_a_writer_keeps_the_frames_that_its_next_item_shows(open_store):
    store = open_store(config(steps_per_chunk=1))
    sampler = store.table("stacked").sampler(1, num_ahead=0)
    with store.writer("a", "stacked") as writer:
        for number in range(8):
            writer.append(step(number), is_first=number == 0)
            writer.insert("stacked", 1)
            writer.flush()
            batch = sampler.sample()  # and with its use the item goes
            assert frames_of(batch) == [[max(0, number - back) for back in (2, 1, 0)]]
            batch.ack()


def test_a_writer_that_comes_again_begins_an_episode(open_store):
    store = open_store(config())
    with store.writer("a", "stacked") as writer:
        writer.append(step(1), is_first=True)
    with store.writer("a", "stacked") as writer:
        with pytest.raises(UsageError, match=r"is_first \(False\) must be True"):
            writer.append(step(2), is_first=False)
        writer.append(step(3), is_first=True)
        writer.insert("stacked", 1)
    assert frames_of(store.table("stacked").sample(1)) == [[3, 3, 3]]


@pytest.mark.parametrize(
    ("is_first", "error"),
    [
        (None, r"is_first \(nothing\) must tell of each of 1 steps"),
        ([True, False], r"is_first \(2\) must tell of each of 1 steps"),
    ],
)
def test_a_step_must_say_whether_it_begins_an_episode(open_store, is_first, error):
    store = open_store(config())
    with store.writer("a", "stacked") as writer:
        with pytest.raises(UsageError, match=error):
            writer.append(step(1), is_first=is_first)
        writer.append(step(2), is_first=True)
        writer.insert("stacked", 1)
    assert frames_of(store.table("stacked").sample(1)) == [[2, 2, 2]]


def test_what_cannot_be_stacked_is_refused(open_store):
    store = open_store(config())
    with pytest.raises(UsageError, match=r"table \(stacked\) has stacked columns"):
        store.table("stacked").insert("a", 0, step(1))
    for stack in (0, 257):
        with pytest.raises(UsageError, match=rf"stack \({stack}\) must be 1 to 256"):
            Column(dtype="uint8", stack=stack)


def test_a_frame_takes_its_memory_once(open_store):
    """Bytes an item of a store of 8 MB, of four frames of 84 x 84 each."""
    frame_bytes = 84 * 84

    def bytes_per_item(column: Column, frame: np.ndarray) -> float:
        memory_bytes = 8 << 20
        table = TableConfig(name="dqn", columns={"pixels": column}, num_steps=4)
        store = open_store(table, memory_bytes=memory_bytes)
        with store.writer("a", "dqn", max_item_steps=4) as writer:
            for number in range(2500):
                writer.append({"pixels": frame}, is_first=number % 500 == 0)
                if number % 500 >= 3:  # n-step returns of three steps
                    writer.insert("dqn", 4)
        num_items = store.table("dqn").describe()["num_items"]
        assert store.table("dqn").sample(2).columns["pixels"].shape[-3:] == (4, 84, 84)
        store.close()
        return memory_bytes / num_items

    shape = (84, 84)
    once = bytes_per_item(
        Column(dtype="uint8", shape=shape, stack=4), np.zeros(shape, np.uint8)
    )
    whole = bytes_per_item(
        Column(dtype="uint8", shape=(4, *shape)), np.zeros((4, *shape), np.uint8)
    )
    assert once < 1.15 * frame_bytes
    assert whole > 3.7 * once
