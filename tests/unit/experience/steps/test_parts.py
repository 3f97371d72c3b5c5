"""Learners that draw parts of a batch draw, together, what one learner would draw."""

import dataclasses
import json
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from tengen.experience import (
    ExperiencePart,
    ReplayConfig,
    ShuffledRows,
    StepDraws,
    StepTable,
    WindowConfig,
)
from tengen.run import NumberedFolder
from tengen.store import Store
from tests.unit.experience.rows.test_shuffled import play, shuffler, window
from tests.unit.experience.steps.test_packing import BATCH, COLUMNS, LAYOUTS, blocks

CONFIG = WindowConfig(min_rows=20)
PASSES = dataclasses.replace(CONFIG, with_replacement=False)


def together(leader, part, num_samples):
    """Draws a batch as two learners do, of which the leader has a third."""
    place = num_samples // 3
    divided = leader.divide(num_samples, 0, place)
    # As it travels.
    order = json.loads(json.dumps(divided.order))
    one, other = divided.draw(), part.draw(order, num_samples, place, num_samples)
    other.ack()
    one.ack()
    columns = {
        name: np.concatenate([column, other.columns[name]])
        for name, column in one.columns.items()
    }
    keys = np.concatenate([one.keys, other.keys])
    chances = np.concatenate([one.probabilities, other.probabilities])
    return dataclasses.replace(one, keys=keys, probabilities=chances, columns=columns)


def check_same(one, other):
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.columns.keys() == other.columns.keys()
    for name, column in other.columns.items():
        np.testing.assert_array_equal(one.columns[name], column, err_msg=name)


def shared(leader):
    return json.loads(json.dumps(leader.shared(begins=True)))


@pytest.mark.parametrize("config", [CONFIG, PASSES])
def test_parts_of_a_window_are_its_rows_while_games_arrive(tmp_path, config):
    play(tmp_path, 1)
    alone, leader = (window(tmp_path, config=config) for _ in range(2))
    part = ExperiencePart(lambda state: window(tmp_path, state, config=config))
    for learner in (alone, leader):
        learner.refresh()
    part.catch_up(shared(leader))
    for generation in range(2, 5):
        for _ in range(3):
            check_same(together(leader, part, 15), alone.sample(15))
        play(tmp_path, generation, games=10)
        for learner in (alone, leader):
            learner.refresh()
    # A part that comes later, and one that was there already, go on from the state.
    late = ExperiencePart(lambda state: window(tmp_path, state, config=config))
    state = shared(leader)
    for one in (part, late):
        one.catch_up(state)
    check_same(together(leader, part, 15), alone.sample(15))
    check_same(together(leader, late, 15), alone.sample(15))
    # The leader alone counts what was used.
    assert leader.state()["num_batches"] == 11


def test_a_part_begins_anew_where_the_leader_knows_other_games(tmp_path):
    """As where it was killed before a checkpoint had what it told the others."""
    play(tmp_path, 1)
    leader = window(tmp_path)
    leader.refresh()
    before = leader.state()
    part = ExperiencePart(lambda state: window(tmp_path, state))
    play(tmp_path, 2)
    leader.refresh()
    part.catch_up(shared(leader))
    # The next leader finds a generation that the one before it did not.
    play(tmp_path, 3)
    (found,) = tmp_path.glob("experience/*/*/000002.npz")
    found.unlink()
    again, alone = window(tmp_path, before), window(tmp_path, before)
    for learner in (again, alone):
        learner.refresh()
    part.catch_up(shared(again))
    check_same(together(again, part, 15), alone.sample(15))


def test_parts_of_shuffled_shards_are_their_rows(tmp_path):
    play(tmp_path, 1)
    shuffler(tmp_path).turn(threading.Event())
    folder = NumberedFolder(tmp_path / "shuffled")

    def rows(state=None):
        return ShuffledRows("tictactoe", folder, state)

    alone, leader = rows(), rows()
    for learner in (alone, leader):
        learner.refresh()
    part = ExperiencePart(rows)
    part.catch_up(shared(leader))
    for _ in range(3):
        check_same(together(leader, part, 12), alone.sample(12))
    play(tmp_path, 2)
    shuffler(tmp_path).turn(threading.Event())
    for learner in (alone, leader):
        learner.refresh()
    while leader.available() >= 12:
        check_same(together(leader, part, 12), alone.sample(12))


@pytest.fixture
def short_path():
    """A folder whose name is short enough for a socket's."""
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        yield Path(folder)


def test_a_part_of_a_table_gives_priorities_back_to_its_own_items(tmp_path, short_path):
    layout = LAYOUTS["overlapping"]
    config = ReplayConfig(
        sampler="prioritized",
        priority_exponent=1.0,
        max_items=60,
        samples_per_item=1e6,
        timeout_s=300.0,
    )
    table = StepTable(
        tmp_path / "steps",
        COLUMNS,
        layout,
        config,
        seed=7,
        num_slots=2,
        batch_size=BATCH,
        directory=short_path / "steps",
    )
    writer = table.writer("actor-0", 2)
    num_items = 0
    for steps, state in blocks(layout, 2, seed=1):
        num_items += writer.append(steps, state)
        if num_items >= 20:
            break
    num_items = table.describe()["num_items"]

    def open_draws(shared):
        store = Store.connect(short_path / "steps")
        return StepDraws(store, COLUMNS, layout, config)

    part = ExperiencePart(open_draws)
    part.catch_up({})
    given = {}
    rng = np.random.default_rng(5)
    for number in range(1000):
        # Until each was drawn, which one of little priority may be late.
        if number >= 40 and len(given) == num_items:
            break
        divided = table.divide(BATCH, 0, 3)
        one, other = divided.draw(), part.draw(divided.order, BATCH, 3, BATCH)
        assert (len(one.keys), len(other.keys)) == (3, BATCH - 3)
        for batch in (one, other):
            assert batch.columns["observation/planes"].dtype == np.bool_
            priorities = rng.uniform(1, 9, len(batch.keys))
            # Of an item that is in a batch twice the last one holds.
            given.update(zip(batch.keys.tolist(), priorities.tolist(), strict=True))
            batch.ack(priorities)
    part.draw({}, BATCH, 3, BATCH)  # lent, and never acknowledged
    part.close()
    assert len(given) == num_items
    found = table.sample(BATCH)
    wanted = [given[key] / sum(given.values()) for key in found.keys.tolist()]
    np.testing.assert_allclose(found.probabilities, wanted, rtol=1e-5)  # of float32
    found.ack()
    table.close()
