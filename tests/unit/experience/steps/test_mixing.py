"""Batches of a replay and of demonstrations: who is drawn, and whose priority it is."""

import dataclasses
import json

import numpy as np
import pytest
from step_blocks import COLUMNS, block, numbers_of

from tengen.experience import (
    ItemLayout,
    Mixture,
    ReplayConfig,
    StepDraws,
    StepTable,
    plan_steps,
)
from tengen.store import Store

LAYOUT = ItemLayout(num_steps=5, period=2)
CONFIG = ReplayConfig(
    sampler="prioritized", max_items=200, samples_per_item=50.0, timeout_s=20.0
)
NUM_DEMOS = 8
DEMO_STEPS = LAYOUT.num_steps + (NUM_DEMOS - 1) * LAYOUT.period + 1
FIRST_DEMO = 100_000


def open_table(folder, share=0.5, *, config=CONFIG, seed=3, state=None, **where):
    return StepTable(
        folder / "steps",
        COLUMNS,
        LAYOUT,
        config,
        seed,
        state,
        num_slots=1,
        batch_size=64,
        mixture=Mixture(share, seed),
        num_demos=NUM_DEMOS,
        **where,
    )


def write(writer, first, num_steps):
    for step in range(first, first + num_steps, 2):
        numbers = numbers_of(1, step, 2)
        version = np.zeros(numbers.shape, np.int64)
        writer.append({**block(numbers), "model_version": version}, {})


def fill(table, num_steps=60):
    write(table.demos.repeating_writer("demos/0"), FIRST_DEMO, DEMO_STEPS)
    write(table.writer("actor-0", 1), 0, num_steps)


def is_demo(batch):
    return batch.columns["observation/number"][:, 0] >= FIRST_DEMO


def test_each_element_is_a_demonstration_with_the_share_s_probability():
    counts = [Mixture(0.3, 7).num_demos(n, 50, 0, 50) for n in range(400)]
    # Of a binomial distribution, four standard errors wide.
    assert np.mean(counts) == pytest.approx(15, abs=4 * (50 * 0.3 * 0.7 / 400) ** 0.5)
    assert np.var(counts) == pytest.approx(50 * 0.3 * 0.7, rel=0.3)
    again = [Mixture(0.3, 7).num_demos(n, 50, 0, 50) for n in range(400)]
    other = [Mixture(0.3, 8).num_demos(n, 50, 0, 50) for n in range(400)]
    assert counts == again != other


def test_the_parts_of_several_learners_have_as_many_as_one_batch():
    mixture = Mixture(0.4, 1)
    for number in range(50):
        bounds = [(0, 7), (7, 20), (20, 32)]
        parts = [mixture.num_demos(number, 32, *bound) for bound in bounds]
        assert sum(parts) == mixture.num_demos(number, 32, 0, 32)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_batch_has_both_and_only_the_replay_s_count(tmp_path, share):
    table = open_table(tmp_path, share)
    try:
        fill(table)
        available, num_demos = table.available(), []
        for number in range(20):
            batch = table.sample(16)
            num_demos.append(is_demo(batch).sum())
            assert num_demos[-1] == Mixture(share, 3).num_demos(number, 16, 0, 16)
            # Every item is complete: consecutive steps of one writer.
            steps = np.diff(batch.columns["observation/number"], axis=1)
            assert (steps == 1).all()
            batch.ack(np.ones(16))
        assert table.available() == available - 20 * 16 + sum(num_demos)
        assert table.describe()["num_items"] == (60 - 5) // 2 + 1
    finally:
        table.close()


def test_a_priority_returns_to_the_table_of_its_item(tmp_path):
    config = dataclasses.replace(CONFIG, priority_exponent=1.0)
    table = open_table(tmp_path, config=config)
    try:
        fill(table)
        # After this, only the items with an even number at their start have priority.
        for _ in range(60):
            batch = table.sample(32)
            first = batch.columns["observation/number"][:, 0]
            batch.ack(np.where(first % 4 == 0, 3.0, 1e-9))
        batch = table.sample(64)
        first = batch.columns["observation/number"][:, 0]
        assert 0 < is_demo(batch).sum() < 64
        assert (first % 4 == 0).all()
        # Each table has its own greatest priority.
        assert table.demos.max_priority == table.max_priority == 3.0
        table.demos.sample_own(8).ack(np.full(8, 9.0))
        assert (table.demos.max_priority, table.max_priority) == (9.0, 3.0)
        batch.ack(np.ones(64))
    finally:
        table.close()


def test_importance_weights_are_those_of_the_item_s_own_table(tmp_path):
    """Where both tables are uniform, no item has more weight than another."""
    table = open_table(tmp_path)
    try:
        fill(table)
        batch = table.sample(64)
        demos = is_demo(batch)
        assert np.allclose(batch.probabilities[demos], 1 / NUM_DEMOS)
        assert np.allclose(batch.probabilities[~demos], 1 / 28)
        assert np.allclose(batch.importance_weights(0.6), 1.0)
        assert batch.greatest_weight(0.6) == pytest.approx(1.0)
        batch.ack()
    finally:
        table.close()


def test_demonstrations_are_never_removed(tmp_path):
    config = dataclasses.replace(CONFIG, max_items=10)
    table = open_table(tmp_path, config=config)
    try:
        fill(table, 2000)
        batch = table.demos.sample_own(64)
        first = batch.columns["observation/number"][:, 0] - FIRST_DEMO
        assert set(first.tolist()) == set(range(0, 2 * NUM_DEMOS, 2))
        assert table.describe()["num_items"] == 10
    finally:
        table.close()


def test_the_same_seed_draws_the_same_batches_also_after_a_resumption(tmp_path):
    def draw(table, count):
        drawn = []
        for _ in range(count):
            batch = table.sample(16)
            drawn.append(batch.columns["observation/number"][:, 0].tolist())
            batch.ack(np.ones(16))
        return drawn

    tables = [open_table(tmp_path / name) for name in ("one", "other")]
    for table in tables:
        fill(table)
    one, other = (draw(table, 6) for table in tables)
    assert one == other
    state = json.loads(json.dumps(tables[0].state()))
    tables[0].close()
    whole = draw(tables[1], 6)
    tables[1].close()
    again = open_table(tmp_path / "one", state=state)
    resumed = [
        sum(number >= FIRST_DEMO for number in batch) for batch in draw(again, 6)
    ]
    assert resumed == [sum(n >= FIRST_DEMO for n in batch) for batch in whole]
    again.close()


def test_items_that_are_there_are_not_inserted_twice(tmp_path):
    table = open_table(tmp_path)
    write(table.demos.repeating_writer("demos/0"), FIRST_DEMO, DEMO_STEPS - 6)
    table.flush()
    assert table.demos.num_inserts == NUM_DEMOS - 3
    table.close()
    table = open_table(tmp_path)
    try:
        assert table.demos.num_inserts == NUM_DEMOS - 3
        write(table.demos.repeating_writer("demos/0"), FIRST_DEMO, DEMO_STEPS)
        assert table.demos.num_inserts == NUM_DEMOS
        batch = table.demos.sample_own(64)
        first = batch.columns["observation/number"][:, 0] - FIRST_DEMO
        assert set(first.tolist()) == set(range(0, 2 * NUM_DEMOS, 2))
    finally:
        table.close()


def test_a_follower_draws_its_part_from_both_tables(tmp_path):
    table = open_table(tmp_path, directory=tmp_path / "shared")
    fill(table)
    follower = StepDraws(
        Store.connect(tmp_path / "shared"), COLUMNS, LAYOUT, CONFIG, Mixture(0.5, 3)
    )
    try:
        for number in range(5):
            divided = table.divide(16, 0, 6)
            order = json.loads(json.dumps(divided.order))
            own, other = divided.draw(), follower.draw(order, 16, 6, 16)
            num_demos = is_demo(own).sum() + is_demo(other).sum()
            assert num_demos == Mixture(0.5, 3).num_demos(number, 16, 0, 16)
            other.ack(np.ones(10))
            own.ack(np.ones(6))
    finally:
        follower.close()
        table.close()


def test_the_memory_of_demonstrations_is_planned(tmp_path):
    sizes = [
        plan_steps(
            tmp_path / "steps",
            COLUMNS,
            LAYOUT,
            CONFIG,
            num_slots=1,
            batch_size=8,
            num_demos=num_demos,
        ).budget.memory_bytes
        for num_demos in (0, 100_000)
    ]
    of_a_step = sum(8 if n == "model_version" else 1 for n in COLUMNS)
    assert sizes[1] - sizes[0] > 100_000 * LAYOUT.period * of_a_step
