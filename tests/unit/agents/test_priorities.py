"""Priorities from an update to the table, and importance weights from the table."""

from __future__ import annotations

import numpy as np
import pytest

from tengen.experience import ItemLayout, ReplayConfig, StepTable
from tengen.learners import AdamWConfig, Learner, LearnerConfig, LossParts, Update
from tengen.store import Column
from tests.unit.agents.agent_fakes import TableNet, Tensors

NUM_ITEMS = 60
# An item has two steps, so the last step begins no item.
NUM_STEPS = NUM_ITEMS + 1


class NumberedUpdate(Update):
    """An update that gives each item the priority 1 + its first observation."""

    def __init__(self, importance_exponent):
        self.importance_exponent = importance_exponent
        self.parts: list[Tensors] = []

    def loss(self, net, columns):
        self.parts.append(columns)
        first = columns["observation"][:, 0]
        q = net.answer({"observation": first}, {})[0]["q"]
        return LossParts(q.square().mean(), {}, 1.0 + first.float())

    def priorities(self):
        """Returns each item's priority by first observation; 1 if never updated."""
        given = dict.fromkeys(range(NUM_ITEMS), 1.0)
        for part in self.parts:
            for first in part["observation"][:, 0].tolist():
                given[first] = 1.0 + first
        return given


def open_table(folder, state=None):
    flags = {
        name: Column(dtype="uint8", shape=())
        for name in ("terminated", "truncated", "is_reset")
    }
    return StepTable(
        folder / "steps",
        {
            "observation": Column(dtype="int64", shape=()),
            "model_version": Column(dtype="int64", shape=()),
            **flags,
        },
        ItemLayout(num_steps=2, period=1),
        ReplayConfig(
            sampler="prioritized",
            max_items=100,
            samples_per_item=1000.0,
            priority_exponent=1.0,
        ),
        seed=1,
        state=state,
        num_slots=2,
        batch_size=200,
    )


def write(table, name, num_steps):
    flags = dict.fromkeys(
        ("terminated", "truncated", "is_reset"), np.zeros((1, num_steps), np.uint8)
    )
    numbers = np.arange(num_steps)[None]
    columns = {"observation": numbers, "model_version": 0 * numbers, **flags}
    table.writer(name, 1).append(columns, {})


@pytest.fixture
def table(tmp_path):
    opened = open_table(tmp_path)
    write(opened, "actor", NUM_STEPS)
    yield opened
    opened.close()


def learner_of(table, update, num_shards):
    config = LearnerConfig(
        batch_size=33,
        num_shards=num_shards,
        optimizer=AdamWConfig(num_warmup_steps=0),
    )
    return Learner(config, TableNet(q=np.ones((NUM_STEPS, 3))), update, table)


def learn(table, update, num_shards, num_steps):
    learner = learner_of(table, update, num_shards)
    for _ in learner.steps(num_steps):
        pass
    learner.close()


def chances(table):
    """Returns the sampling probabilities of the items found in 2,000 samples."""
    found = {}
    for _ in range(10):
        batch = table.sample(200)
        first = batch.columns["observation"][:, 0]
        found.update(zip(first.tolist(), batch.probabilities.tolist(), strict=True))
        batch.ack()
    return found


@pytest.mark.parametrize("num_shards", [1, 2, 5])
def test_priorities_reach_the_items_they_are_of(table, num_shards):
    assert set(chances(table).values()) == {1 / NUM_ITEMS}
    update = NumberedUpdate(0.5)
    learn(table, update, num_shards, 40)
    assert len(update.parts) == 40 * num_shards
    expected = update.priorities()
    assert sum(expected.values()) > 1000
    found = chances(table)
    assert len(found) > NUM_ITEMS // 2
    for first, chance in found.items():
        total = sum(expected.values())
        assert chance == pytest.approx(expected[first] / total, rel=1e-6)


def test_new_items_have_the_greatest_priority_so_far(table, tmp_path):
    update = NumberedUpdate(0.5)
    learn(table, update, 2, 60)
    expected = update.priorities()
    assert table.max_priority == max(expected.values()) == NUM_ITEMS
    write(table, "another", 2)
    total = sum(expected.values()) + NUM_ITEMS
    # The new item begins with 0, like the oldest item, whose priority is 1.
    drawn = set()
    for _ in range(10):
        batch = table.sample(200)
        is_first = batch.columns["observation"][:, 0] == 0
        drawn |= set((batch.probabilities[is_first] * total).round(3).tolist())
        batch.ack()
    assert NUM_ITEMS in drawn
    assert drawn <= {1, NUM_ITEMS}


def test_a_table_that_goes_on_knows_the_greatest_priority(tmp_path):
    table = open_table(tmp_path)
    write(table, "actor", NUM_STEPS)
    learn(table, NumberedUpdate(0.5), 1, 60)
    state = table.state()
    table.close()
    again = open_table(tmp_path, state)
    assert again.max_priority == NUM_ITEMS
    again.close()


def test_weights_are_no_column_where_nobody_asks(table):
    even, weighed = NumberedUpdate(None), NumberedUpdate(0.5)
    for update in (even, weighed):
        learn(table, update, 2, 1)
    assert weighed.parts[0].keys() - even.parts[0].keys() == {"importance_weight"}


def test_weights_are_of_the_whole_batch_whatever_its_parts(table):
    update = NumberedUpdate(0.5)
    learn(table, update, 3, 40)
    seen = [part["importance_weight"].numpy() for part in update.parts]
    batches = [np.concatenate(seen[at : at + 3]) for at in range(0, len(seen), 3)]
    assert {float(weights.max()) for weights in batches} == {1.0}
    # Importance weight = (minimum priority of the batch / item's priority) ** 0.5.
    last = np.concatenate([p["observation"][:, 0].numpy() for p in update.parts[-3:]])
    update.parts = update.parts[:-6]  # the previous batch was also in flight
    given = update.priorities()
    priorities = np.array([given[first] for first in last.tolist()])
    expected = (priorities.min() / priorities) ** 0.5
    np.testing.assert_allclose(batches[-1], expected, rtol=1e-5)
