"""A table of steps holds the items that it says, and asks for little more memory."""

import dataclasses

import numpy as np
import pytest
from step_blocks import FLAGS

from tengen.experience import ItemLayout, ReplayConfig, StepTable, plan_steps
from tengen.experience.steps.room import step_budget
from tengen.store import Column, TableConfig
from tengen.tensors import TensorSpec

N_STEP = ItemLayout(num_steps=4, period=1)
OVERLAPPING = ItemLayout(
    num_steps=13, period=4, state={"hidden": TensorSpec(shape=(64,))}
)
CLOSED = ItemLayout(num_steps=9, period=8, is_closed=True)
SMALL, LARGE = 1, 28_224


def columns_of(observation_bytes):
    return {
        "observation": Column(dtype="uint8", shape=(observation_bytes,)),
        **dict.fromkeys(FLAGS, Column(dtype="uint8")),
        "model_version": Column(dtype="int64"),
    }


def fill(
    folder,
    layout,
    sampler,
    observation_bytes,
    num_slots,
    max_items,
    *,
    batch_size=32,
    resets_every=10**9,
    memory_bytes=0,
):
    """Returns a table that was filled one and a half times, as batches were drawn."""
    config = ReplayConfig(
        sampler=sampler,
        max_items=max_items,
        memory_bytes=memory_bytes,
        samples_per_item=1.0 if sampler == "fifo" else 1e6,
        timeout_s=300.0,
    )
    steps = StepTable(
        folder / "steps",
        columns_of(observation_bytes),
        layout,
        config,
        seed=1,
        num_slots=num_slots,
        batch_size=batch_size,
    )
    writer = steps.writer("actor-0", num_slots)
    num_rows = layout.block_steps(8) + layout.is_closed
    zeros = np.zeros((num_slots, num_rows), np.uint8)
    state = {name: spec.zeros(num_slots) for name, spec in layout.state.items()}
    num_items = num_steps = num_drawn = 0
    batch = None
    while num_items < max_items * 3 // 2:
        numbers = num_steps + np.arange(num_rows)
        is_reset = zeros + (numbers % resets_every == resets_every - 1)
        value = np.uint8(num_steps % 251)
        num_items += writer.append(
            {
                "observation": np.full((*zeros.shape, observation_bytes), value),
                **dict.fromkeys(FLAGS, zeros),
                "is_reset": is_reset.astype(np.uint8),
                "model_version": zeros + np.int64(num_steps),
            },
            state,
        )
        num_steps += num_rows
        if sampler == "fifo":
            # None that waits was removed to make room; a batch stays on loan meanwhile.
            assert steps.available() == num_items - num_drawn
            while steps.available() > max_items - num_slots * num_rows:
                held, batch = batch, steps.sample(batch_size)
                num_drawn += batch_size
                if held is not None:
                    held.ack()
        elif num_items > batch_size:
            held, batch = batch, steps.sample(batch_size)
            if held is not None:
                held.ack()
    return steps


def test_what_budgets_are_worked_out_from():
    table = TableConfig(
        name="steps",
        columns={"observation": Column(dtype="uint8", shape=(1024,))},
        max_items=6400,
        num_steps=4,
    )
    assert table.chunk_length == 64
    # A queue's items are those of the two batches that are lent, too.
    longer = dataclasses.replace(table, max_items=6400 + 2 * 32)
    queue = step_budget(longer, N_STEP, is_queue=True, num_slots=10, batch_size=32)
    # (6400 + 2 * 32) items of at most two steps are 202 chunks; a slot has 3 more.
    num_bytes = (202 + 10 * 3) * 65536
    num_bytes += num_bytes // 64 + 65536
    assert queue == (num_bytes, 0, num_bytes, num_bytes, 0)
    replay = step_budget(table, N_STEP, is_queue=False, num_slots=10, batch_size=32)
    # 1.25 steps an item are 127 chunks, two batches of items in two chunks each 128.
    num_bytes = (127 + 30 + 128 + 30 // 3 + 1) * 65536
    assert replay.memory_bytes == num_bytes + num_bytes // 64 + 65536
    assert replay.disk_bytes == 2 * (202 + 30) * 65536
    # One step an item is 101 chunks.
    for memory_bytes, num_items_chunks in (
        (replay.whole_memory_bytes, 101),
        (replay.least_memory_bytes, 0),
    ):
        num_bytes = (num_items_chunks + 30 + 128 + 30 // 3 + 1) * 65536
        assert memory_bytes == num_bytes + num_bytes // 64 + 65536
    assert replay.least_disk_bytes == (101 + 30) * 65536


@pytest.mark.parametrize("is_queue", [True, False])
@pytest.mark.parametrize("layout", [N_STEP, OVERLAPPING, CLOSED])
@pytest.mark.parametrize("step_bytes", [20, 100, 5_000, 28_224])
@pytest.mark.parametrize("num_slots", [1, 64])
def test_a_budget_is_at_most_twice_the_steps(is_queue, layout, step_bytes, num_slots):
    table = TableConfig(
        name="steps",
        columns={"observation": Column(dtype="uint8", shape=(step_bytes,))},
        max_items=100_000,
        num_steps=layout.num_steps,
    )
    budget = step_budget(
        table, layout, is_queue=is_queue, num_slots=num_slots, batch_size=32
    )
    steps = table.max_items * (layout.period + layout.is_closed) * step_bytes
    # What chunks that are shared out among slots and batches take at least.
    shared = (4 * num_slots + 64 * (2 + layout.num_steps // table.chunk_length)) << 16
    most = 2.1 if is_queue and layout.period == 1 else 1.5
    assert steps <= budget.memory_bytes <= most * steps + 1.5 * shared
    assert budget.disk_bytes <= (0 if is_queue else 5 * steps + 3 * shared)


@pytest.mark.parametrize("sampler", ["uniform", "fifo"])
@pytest.mark.parametrize(
    ("layout", "observation_bytes", "num_slots", "max_items"),
    [
        (N_STEP, SMALL, 1, 20_000),
        (N_STEP, SMALL, 64, 5_000),
        (N_STEP, LARGE, 1, 1_000),
        (N_STEP, LARGE, 64, 1_500),
        (OVERLAPPING, SMALL, 64, 2_000),
        (OVERLAPPING, LARGE, 1, 300),
        (OVERLAPPING, LARGE, 16, 300),
        (CLOSED, SMALL, 64, 1_000),
        (CLOSED, LARGE, 8, 100),
    ],
)
def test_a_table_holds_all_its_items(
    tmp_path, sampler, layout, observation_bytes, num_slots, max_items
):
    steps = fill(tmp_path, layout, sampler, observation_bytes, num_slots, max_items)
    if sampler != "fifo":
        assert steps.describe()["num_items"] == max_items
    steps.close()


@pytest.mark.parametrize("sampler", ["uniform", "fifo"])
def test_short_episodes_cost_no_items(tmp_path, sampler):
    """Where every second step resets, an item costs two steps."""
    steps = fill(tmp_path, N_STEP, sampler, LARGE, 4, 1_000, resets_every=2)
    if sampler != "fifo":
        assert steps.describe()["num_items"] == 1_000
    steps.close()


@pytest.mark.parametrize("sampler", ["uniform", "fifo"])
def test_more_slots_than_items_have_chunks(tmp_path, sampler):
    steps = fill(tmp_path, N_STEP, sampler, SMALL, 600, 6_000, batch_size=600)
    if sampler != "fifo":
        assert steps.describe()["num_items"] == 6_000
    steps.close()


@pytest.mark.parametrize("num_slots", [1, 16])
@pytest.mark.parametrize("layout", [N_STEP, OVERLAPPING, CLOSED])
def test_the_least_memory_is_enough_for_all_items(tmp_path, layout, num_slots):
    # More slots have more chunks that they share with nobody.
    max_items = (3_000 if layout.period == 1 else 800) // (2 if num_slots == 1 else 1)
    config = ReplayConfig(sampler="prioritized", max_items=max_items)
    plan = plan_steps(
        tmp_path,
        columns_of(LARGE),
        layout,
        config,
        num_slots=num_slots,
        batch_size=8,
    )
    least = plan.budget.least_memory_bytes
    steps = fill(
        tmp_path,
        layout,
        "prioritized",
        LARGE,
        num_slots,
        max_items,
        batch_size=8,
        memory_bytes=least,
    )
    assert steps.room.memory_bytes == least < max_items * LARGE
    assert steps.describe()["num_items"] == max_items
    steps.close()
