"""Stacked samples of random episodes, held against frames stacked one by one."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tengen.store import Column, RateLimits, Selector, Store, TableConfig


@dataclass(frozen=True)
class Case:
    """What is written and drawn.

    Attributes:
        stacks: Of the two columns.
        steps_per_chunk: Of the table.
        num_steps: T of a sample.
        item_steps: Of each item; longer ones are drawn in slices.
        episode_lengths: Of the episodes, one after another.
        blocks: Steps an append, over and over.
        memory_chunks: How many chunks the store holds.
        num_samples: B of each batch.
    """

    stacks: tuple[int, int]
    steps_per_chunk: int
    num_steps: int
    item_steps: int
    episode_lengths: tuple[int, ...]
    blocks: tuple[int, ...]
    memory_chunks: int
    num_samples: int


@st.composite
def cases(draw) -> Case:
    num_steps = draw(st.integers(1, 6))
    lengths = st.integers(1, 15)
    return Case(
        stacks=(draw(st.integers(2, 6)), draw(st.integers(1, 4))),
        steps_per_chunk=draw(st.integers(1, 9)),
        num_steps=num_steps,
        item_steps=num_steps + draw(st.sampled_from([0, 0, 1, 7])),
        episode_lengths=tuple(draw(st.lists(lengths, min_size=1, max_size=12))),
        blocks=tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))),
        memory_chunks=draw(st.sampled_from([24, 200])),
        num_samples=draw(st.integers(1, 9)),
    )


def stacked_by_hand(case: Case) -> tuple[list[bool], list[list], list[list]]:
    """Whether each step is its episode's first, and its stack in either column."""
    is_first: list[bool] = []
    stacks: tuple[list[list], list[list]] = ([], [])
    for length in case.episode_lengths:
        seen = [deque(maxlen=size) for size in case.stacks]
        for age in range(length):
            number = len(is_first)
            is_first.append(age == 0)
            for frames, out in zip(seen, stacks, strict=True):
                # An episode begins as an environment's wrapper does: its first frame
                # as often as fits.
                frames.extend([number] * (frames.maxlen if age == 0 else 1))
                out.append(list(frames))
    return is_first, *stacks


def frame(number: int, length: int) -> np.ndarray:
    return number * 7 + np.arange(length, dtype=np.int32)


@settings(
    max_examples=250,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(case=cases())
def test_samples_are_what_stacking_by_hand_gives(case: Case) -> None:
    config = TableConfig(
        name="t",
        columns={
            "deep": Column(dtype="int32", shape=(5,), stack=case.stacks[0]),
            "number": Column(dtype="int64"),
            "inner/flat": Column(dtype="int32", shape=(3,), stack=case.stacks[1]),
        },
        sampler=Selector(kind="uniform"),
        limits=RateLimits(),
        num_steps=case.num_steps,
        steps_per_chunk=case.steps_per_chunk,
    )
    chunk_bytes = (config.step_bytes + 1) * case.steps_per_chunk + 4 * 64
    is_first, deep, flat = stacked_by_hand(case)
    with Store([config], memory_bytes=case.memory_chunks * chunk_bytes) as store:
        table = store.table("t")
        writer = store.writer("w", "t", max_item_steps=case.item_steps + 7)
        sampler = table.sampler(case.num_samples)
        done = turn = 0
        while done < len(is_first):
            count = min(case.blocks[turn % len(case.blocks)], len(is_first) - done)
            turn += 1
            numbers = range(done, done + count)
            writer.append(
                {
                    "deep": np.stack([frame(number, 5) for number in numbers]),
                    "number": np.array(numbers),
                    "inner": {"flat": np.stack([frame(n, 3) for n in numbers])},
                },
                is_first=np.array(is_first[done : done + count]),
            )
            before, done = done, done + count
            num_new = writer.insert_each("t", case.item_steps)
            assert num_new == max(0, done - max(before, case.item_steps - 1))
            if num_new == 0:
                continue
            batch = sampler.sample(timeout_s=0.0)
            check(case, batch.columns, deep, flat)
            batch.ack()


def check(case: Case, columns: dict, deep: list[list], flat: list[list]) -> None:
    numbers = columns["number"].reshape(case.num_samples, case.num_steps)
    np.testing.assert_array_equal(
        numbers, numbers[:, :1] + np.arange(case.num_steps)[None]
    )
    for got, expected, length in (
        (columns["deep"], deep, 5),
        (columns["inner"]["flat"], flat, 3),
    ):
        rows = [expected[number] for number in numbers.reshape(-1)]
        frames = np.array([[frame(one, length) for one in row] for row in rows])
        np.testing.assert_array_equal(got.reshape(frames.shape), frames)
