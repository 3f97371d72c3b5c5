"""Tables of steps: which items there are, how often they are drawn, what stays."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from step_blocks import STATE, Steps, block, check_states, numbers_of

from tengen.errors import RunError, UsageError
from tengen.experience import ItemLayout
from tengen.store import Column
from tengen.tensors import TensorSpec
from tests.refusals import refused

CLOSED = ItemLayout(num_steps=4, period=3, is_closed=True)
OVERLAPPING = ItemLayout(num_steps=5, period=2)
SINGLE = ItemLayout(num_steps=3, period=1)


def items_of(columns):
    """The numbers of the steps of each item; every column must tell the same."""
    numbers = columns["observation/number"]
    pair = np.stack([numbers, -numbers], -1).astype(np.float32)
    np.testing.assert_array_equal(columns["observation/pair"], pair)
    np.testing.assert_array_equal(columns["reward"], numbers / 2)
    return [list(map(int, item)) for item in numbers]


def num_stored(steps):
    """Steps that lie in the store."""
    return sum(writer.num_steps for writer in steps.writer._writers)


def test_a_closed_block_is_an_item_at_once(tmp_path):
    with Steps(tmp_path, CLOSED, num_slots=2) as steps:
        # Each has three transitions and the step that the next block begins with.
        assert steps.append(3, version=7) == 2
        assert steps.table.available() == 2
        assert steps.append(3, version=8, is_reset=[[1, 0, 1, 0], [0, 0, 0, 0]]) == 2
        columns = steps.all_items()
        firsts = [0, 1000, 3, 1003]
        assert items_of(columns) == [list(range(n, n + 4)) for n in firsts]
        assert columns["model_version"].tolist() == [[7] * 4] * 2 + [[8] * 4] * 2
        assert columns["is_reset"].tolist()[2] == [1, 0, 1, 0]
        # Nothing is shared: the closing step lies there once more.
        assert num_stored(steps) == 2 * (4 + 4)
        # Frames are what was done, and neither resets nor the closing steps.
        counts = {"num_items": 0, "num_rows": 12 - 2, "num_episodes": 2}
        assert steps.table.describe() == counts


def test_steps_of_overlapping_items_lie_in_the_store_once(tmp_path):
    with Steps(tmp_path, OVERLAPPING, num_slots=2) as steps:
        # Two steps a block: the first item is there with the third block.
        assert [steps.append(2, version=i) for i in range(6)] == [0, 0, 2, 2, 2, 2]
        columns = steps.all_items()
        firsts = [0, 1000, 2, 1002, 4, 1004, 6, 1006]
        assert items_of(columns) == [list(range(n, n + 5)) for n in firsts]
        # Of the model that acted in the item's first step.
        assert columns["model_version"][:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert num_stored(steps) == 24
        # Eight items of five steps: as if each had its own.
        assert steps.append(2) == 2
        assert steps.table._table.describe()["num_steps"] == 2 * 5


@pytest.mark.parametrize(
    "layout",
    [
        ItemLayout(num_steps=4, period=3, is_closed=True, state=STATE),
        ItemLayout(num_steps=7, period=3, state=STATE),
        ItemLayout(num_steps=4, period=4, state=STATE),
        ItemLayout(num_steps=9, period=2, state=STATE),
        ItemLayout(num_steps=3, period=1, state=STATE),
    ],
    ids=["closed", "overlapping", "apart", "burn-in", "single"],
)
@pytest.mark.parametrize("sampler", ["fifo", "uniform"])
def test_an_item_has_the_state_of_its_own_first_step(tmp_path, layout, sampler):
    rate = 1.0 if sampler == "fifo" else 1e6
    with Steps(
        tmp_path,
        layout,
        num_slots=3,
        batch_size=50,
        sampler=sampler,
        samples_per_item=rate,
    ) as steps:
        num_items = sum(steps.append(layout.block_steps(50)) for _ in range(12))
        num_drawn = num_items if sampler == "fifo" else 50
        columns = steps.table.sample(num_drawn).columns
        first_numbers = columns["observation/number"][:, 0]
        check_states(layout, columns, first_numbers)
        # Those of the blocks after are others: to be off by one is seen.
        with pytest.raises(AssertionError):
            check_states(layout, columns, first_numbers + layout.period)


def test_the_state_of_the_step_after_the_burn_in_would_be_found(tmp_path):
    """SEED RL stored the state that the network had when burn-in was over."""

    class Late(ItemLayout):
        def join(self, columns):
            late = {
                name: np.roll(values, -4, axis=1)
                if name.startswith("state/")
                else values
                for name, values in columns.items()
            }
            return super().join(late)

    layout = Late(num_steps=9, period=2, state=STATE)
    with Steps(tmp_path, layout) as steps:
        for _ in range(8):
            steps.append(2)
        columns = steps.all_items()
        first_numbers = columns["observation/number"][:, 0]
        with pytest.raises(AssertionError):
            check_states(layout, columns, first_numbers)
        check_states(layout, columns, first_numbers + 4)


class SlowSteps:
    """Which items there are, in a list of Python's."""

    def __init__(self, layout, num_slots):
        self._layout = layout
        self._numbers: list[list[int]] = [[] for _ in range(num_slots)]
        self._resets: list[list[bool]] = [[] for _ in range(num_slots)]
        self._versions: list[list[int]] = [[] for _ in range(num_slots)]
        self.items: list[tuple[list[int], int]] = []

    def append(self, numbers, resets, version):
        layout = self._layout
        before = len(self.items)
        for slot in range(len(numbers)):
            past = self._numbers[slot]
            for number, is_reset in zip(numbers[slot], resets[slot], strict=True):
                past.append(int(number))
                self._resets[slot].append(bool(is_reset))
                self._versions[slot].append(version)
                first = len(past) - layout.num_steps
                if first < 0 or first % layout.period != 0:
                    continue
                if layout.period == 1 and self._resets[slot][first]:
                    continue
                self.items.append((past[first:], self._versions[slot][first]))
        return len(self.items) - before


@pytest.mark.parametrize("seed", range(25))
def test_items_are_those_of_a_slow_reference(tmp_path, seed):
    rng = np.random.default_rng(seed)
    num_slots, num_steps = int(rng.integers(1, 5)), int(rng.integers(2, 12))
    period = 1 if seed % 2 else int(rng.integers(1, num_steps + 1))
    state = {} if rng.random() < 0.5 else STATE
    layout = ItemLayout(num_steps=num_steps, period=period, state=state)
    slow = SlowSteps(layout, num_slots)
    was_reset = np.zeros(num_slots, np.bool_)
    with Steps(tmp_path, layout, num_slots=num_slots) as steps:
        for version in range(12):
            length = layout.block_steps(int(rng.integers(1, 15)))
            resets = rng.random((num_slots, length)) < rng.choice([0.1, 0.5])
            for t in range(length):  # an episode has a step at least
                resets[:, t] &= ~(was_reset if t == 0 else resets[:, t - 1])
            was_reset = resets[:, -1]
            numbers = numbers_of(num_slots, steps.num_steps, length)
            found = steps.append(length, version, resets)
            assert found == slow.append(numbers, resets, version)
        assert steps.table.available() == len(slow.items)
        if not slow.items:
            return
        columns = steps.all_items()
        assert items_of(columns) == [item for item, _ in slow.items]
        assert columns["model_version"][:, 0].tolist() == [v for _, v in slow.items]
        check_states(layout, columns, columns["observation/number"][:, 0])


@pytest.mark.parametrize(
    ("samples_per_item", "min_items"), [(0.1, 3), (0.7, 4), (1.0, 1), (3.3, 20)]
)
def test_what_is_available_is_drawn_without_waiting_and_no_more(
    tmp_path, samples_per_item, min_items
):
    rng = np.random.default_rng(1)
    num_items = num_samples = 0
    limits = {"samples_per_item": samples_per_item, "min_items": min_items}
    uniform = {"sampler": "uniform", "max_items": 50, **limits}
    with Steps(tmp_path, SINGLE, batch_size=1000, **uniform) as steps:
        for _ in range(100):
            num_items += steps.append(int(rng.integers(1, 6)))
            available = steps.table.available()
            assert num_items >= min_items or available == 0
            if available > 0 and rng.random() < 0.5:
                wanted = int(rng.integers(1, available + 1))
                steps.table.sample(wanted).ack()
                num_samples += wanted
            assert num_samples <= samples_per_item * num_items
        assert num_samples > 0.9 * samples_per_item * (num_items - 50)


def test_a_uniform_replay_lends_the_same_batches_together(tmp_path):
    config = {"sampler": "uniform", "max_items": 50, "samples_per_item": 9.0}
    found = []
    for count in (1, 4):
        with Steps(tmp_path / str(count), SINGLE, **config) as steps:
            steps.append(20)
            assert steps.table.num_together >= 4
            keys = []
            for _ in range(4 // count):
                lent = [steps.table.sample(5) for _ in range(count)]
                keys += [batch.keys.tolist() for batch in lent]
                for batch in lent:
                    batch.ack()
            found.append(keys)
    assert found[0] == found[1]


def test_what_does_not_come_in_time_is_told(tmp_path):
    with Steps(
        tmp_path, SINGLE, batch_size=4, sampler="uniform", timeout_s=0.01
    ) as steps:
        steps.append(8)
        with refused(RunError, "experience (steps)"):
            steps.table.sample(steps.table.available() + 1)


def test_what_is_missing_is_told(tmp_path):
    with Steps(
        tmp_path, SINGLE, sampler="uniform", min_items=5, samples_per_item=2.0
    ) as steps:
        assert steps.append(6) == 4
        told = steps.table.lacks(4)
        assert told.startswith("items (4) must be at least store.min_items (5); ")
        assert steps.append(2) == 2
        told = "items (2) ready for sampling must be at least learner.batch_size (4); "
        assert steps.table.lacks(4) == told + "collect more"
        assert steps.append(1) == 1
        assert steps.table.lacks(4) == ""
        assert steps.table.validation(4) is None


def test_a_full_queue_says_so(tmp_path):
    with Steps(tmp_path, CLOSED, max_items=2, timeout_s=0.01) as steps:
        steps.append(3)
        steps.append(3)
        with refused(RunError, "experience (steps)", "0.01 s"):
            steps.append(3)


def test_an_actor_of_another_process_is_no_further_ahead(tmp_path):
    shared = tmp_path / "shared"
    with Steps(tmp_path, CLOSED, directory=shared, max_items=2, timeout_s=3.0) as steps:
        for num_items in (1, 2):
            steps.append(3)
            assert steps.table.available() == num_items
        with refused(RunError, "experience (steps)"):
            steps.append(3)


def test_a_batch_on_loan_takes_no_room_from_those_that_wait(tmp_path):
    with Steps(tmp_path, CLOSED, max_items=3, timeout_s=0.01) as steps:
        for _ in range(3):
            steps.append(3)
        batch = steps.table.sample(2)
        assert [steps.append(3) for _ in range(2)] == [1, 1]
        assert items_of(dict(batch.columns)) == [[0, 1, 2, 3], [3, 4, 5, 6]]
        batch.ack()
        assert [item[0] for item in items_of(steps.all_items())] == [6, 9, 12]


def test_writers_go_on_while_a_sample_waits(tmp_path):
    """What a batch needs may come by several blocks."""
    with Steps(tmp_path, CLOSED, timeout_s=300.0) as steps:
        drawn = []
        thread = threading.Thread(
            target=lambda: drawn.extend(items_of(dict(steps.table.sample(2).columns)))
        )
        thread.start()
        for _ in range(2):
            steps.append(3)
        thread.join()
        assert drawn == [[0, 1, 2, 3], [3, 4, 5, 6]]


def test_new_items_have_the_greatest_priority_so_far(tmp_path):
    with Steps(
        tmp_path,
        SINGLE,
        batch_size=6000,
        sampler="prioritized",
        priority_exponent=0.5,
        samples_per_item=1e6,
        max_items=100,
    ) as steps:
        steps.append(5)
        batch = steps.table.sample(600)
        assert batch.probabilities.tolist() == pytest.approx([1 / 3] * 600)
        # An item's priority is 1, 16 and 9 by its first step.
        given = np.array([1.0, 16.0, 9.0])
        batch.ack(given[batch.columns["observation/number"][:, 0]])
        assert steps.table.max_priority == 16.0
        assert steps.append(1) == 1
        batch = steps.table.sample(6000)
        first = batch.columns["observation/number"][:, 0]
        # Roots of 1, 16, 9 and of 16 for the new item.
        expected = np.array([1, 4, 3, 4]) / 12
        assert batch.probabilities.tolist() == pytest.approx(expected[first].tolist())
        shares = np.bincount(first, minlength=4) / 6000
        # Five standard errors of 6,000 draws are 0.03.
        assert shares == pytest.approx(expected, abs=0.03)
        # (4 * P) ** -1, divided by the greatest, which is the least likely item's.
        weights = batch.importance_weights(1.0)
        assert weights.tolist() == pytest.approx((1 / 12 / expected[first]).tolist())
        # One outlier does not stay the greatest for ever.
        batch.ack(np.ones(6000))
        assert steps.table.max_priority == 1.0


def test_priorities_that_are_refused_or_of_no_use_change_nothing(tmp_path):
    for sampler in ("prioritized", "uniform"):
        folder = tmp_path / sampler
        with Steps(folder, SINGLE, sampler=sampler, samples_per_item=100.0) as steps:
            steps.append(5)
            batch = steps.table.sample(2)
            if sampler == "prioritized":
                with refused(UsageError, "priority (inf)"):
                    batch.ack(np.array([np.inf, 1.0]))
            else:
                batch.ack(np.array([5.0, 6.0]))
            assert steps.table.max_priority == 1.0


@pytest.mark.parametrize("sampler", ["uniform", "prioritized"])
def test_a_replay_goes_on_after_a_stop(tmp_path, sampler):
    settings = {"sampler": sampler, "min_items": 2}
    settings |= {"samples_per_item": 40.0, "batch_size": 157}
    layout = ItemLayout(num_steps=5, period=2, state=STATE)
    with Steps(tmp_path, layout, num_slots=2, **settings) as steps:
        for version in range(5):
            steps.append(2, version, [[0, 1]] * 2)
        assert (steps.table.refresh(), steps.table.generation) == (6, 1)
        batch = steps.table.sample(3)
        batch.ack(np.array([3.0, 7.0, 2.0]))
        before = steps.table.available()
        assert before == (6 - 2) * 40 - 3
        state = json.loads(json.dumps(steps.table.state()))
        described = steps.table.describe()
        assert described == {"num_items": 6, "num_rows": 10, "num_episodes": 10}
        greatest = steps.table.max_priority
    with Steps(tmp_path, layout, num_slots=2, state=state, **settings) as steps:
        assert steps.table.describe() == described
        assert steps.table.available() == before
        assert (steps.table.refresh(), steps.table.generation) == (0, 1)
        assert steps.table.max_priority == greatest
        columns = dict(steps.table.sample(before).columns)
        assert {item[0] for item in items_of(columns)} == {0, 2, 4, 1000, 1002, 1004}
        check_states(layout, columns, columns["observation/number"][:, 0])
        # The actor began anew: an item has none of the steps before.
        steps.num_steps = 100
        assert [steps.append(2) for _ in range(3)] == [0, 0, 2]
        assert (steps.table.refresh(), steps.table.generation) == (2, 2)
        columns = dict(steps.table.sample(8).columns)
        for item in items_of(columns):
            assert item == list(range(item[0], item[0] + 5))


def test_a_replay_without_the_learner_s_state_has_its_items(tmp_path):
    settings = {"sampler": "uniform", "samples_per_item": 4.0}
    with Steps(tmp_path, SINGLE, **settings) as steps:
        steps.append(6)
    with Steps(tmp_path, SINGLE, **settings) as steps:
        assert (steps.table.refresh(), steps.table.generation) == (4, 1)
        assert steps.table.available() == 3 * 4
    # A table that counted more than there is goes on from what there is.
    state = {"num_seen": 9, "num_turns": 3}
    with Steps(tmp_path, SINGLE, state=state, **settings) as steps:
        assert steps.table.refresh() == 0
        assert steps.append(4) == 2
        assert (steps.table.refresh(), steps.table.generation) == (2, 4)


def test_a_queue_leaves_nothing(tmp_path):
    with Steps(tmp_path, CLOSED) as steps:
        steps.append(3, is_reset=[[0, 1, 0, 0]])
        steps.table.flush()
        steps.table.refresh()
        state = json.loads(json.dumps(steps.table.state()))
    assert list(tmp_path.iterdir()) == []
    with Steps(tmp_path, CLOSED, state=state) as steps:
        assert steps.table.available() == steps.table.refresh() == 0
        assert steps.table.describe() == {
            "num_items": 0,
            "num_rows": 2,
            "num_episodes": 1,
        }
        assert steps.append(3) == steps.table.refresh() == 1
        steps.table.close()
        steps.table.close()


def test_a_reset_where_inference_was_lost_ends_no_episode(tmp_path):
    with Steps(tmp_path, CLOSED) as steps:
        numbers = numbers_of(1, 0, 4)
        columns = block(numbers, [[0, 1, 1, 0]])
        columns["truncated"] = np.array([[0, 1, 0, 0]], np.uint8)
        columns["model_version"] = np.zeros((1, 4), np.int64)
        assert steps.writer.append(columns, {}) == 1
        steps.table.flush()
        steps.table.refresh()
        counts = steps.table.describe()
        assert (counts["num_rows"], counts["num_episodes"]) == (1, 1)


def test_bad_openings_are_refused(tmp_path):
    settings = {"sampler": "uniform"}
    with Steps(tmp_path, SINGLE, num_slots=2, **settings) as steps:
        with refused(UsageError, "num_slots (1)"):
            steps.table.writer("actor-1", 1)
        with refused(UsageError, "running"):
            Steps(tmp_path, SINGLE, **settings)
    other = {"is_reset": Column(dtype="uint8")}
    with refused(UsageError, "columns"):
        Steps(tmp_path, SINGLE, columns=other, **settings)
    state = {"hidden": TensorSpec(shape=(3,))}
    with refused(UsageError, "columns"):
        Steps(tmp_path, ItemLayout(num_steps=3, period=1, state=state), **settings)
