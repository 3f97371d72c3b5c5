"""The collectives of learners, by threads of this process that are each one learner."""

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import pytest
import torch

from tengen.agents.bases.policy_update import ReturnScale
from tengen.learners import Update
from tengen.learners.batches import rows_to_learn
from tengen.learners.group import ALONE, GroupLost, row_bounds
from tengen.learners.torch_group import Meeting, TorchGroup
from tengen.store import Batch

T = TypeVar("T")
SIZE = 3
PATIENCE_S = 10.0


@pytest.fixture
def meeting():
    made = Meeting("127.0.0.1")
    yield made
    made.close()


def together(meeting, work, size=SIZE):
    """Returns what each of several learners found, by rank."""
    name = secrets.token_hex(8)

    def learner(rank):
        group = TorchGroup(
            "127.0.0.1", meeting.port, name, rank, size, patience_s=PATIENCE_S
        )
        try:
            return work(group)
        finally:
            group.close()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(learner, range(size)))


def test_what_learners_have_is_added_and_gathered(meeting):
    def work(group):
        numbers = torch.arange(5.0) * 10**group.rank
        group.add(numbers)
        rows = torch.full((group.rank, 2), group.rank, dtype=torch.bool)
        return (
            numbers.tolist(),
            group.gather([group.rank, 0.5]).tolist(),
            group.gather_rows(rows).tolist(),
            group.gather_bytes(b"x" * group.rank),
            group.broadcast(b"leader" if group.rank == 0 else b""),
            tuple(group.place(group.rank + 1)),
        )

    for rank, found in enumerate(together(meeting, work)):
        assert found == (
            [0.0, 111.0, 222.0, 333.0, 444.0],
            [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]],
            [[True, True]] * 3,
            [b"", b"x", b"xx"],
            b"leader",
            ((0, 1, 3)[rank], 6),
        )


def test_a_learner_that_leaves_is_seen_by_all_who_wait(meeting):
    """Long before their patience is at its end."""
    left = threading.Event()

    def work(group):
        group.gather([1.0])
        if group.rank == 2:
            left.set()
            return True
        left.wait(PATIENCE_S)
        with pytest.raises(GroupLost):
            group.add(torch.ones(100_000))
        group.close()
        with pytest.raises(GroupLost):
            group.gather([1.0])
        return True

    assert together(meeting, work) == [True] * 3


def test_a_learner_that_does_not_come_is_not_waited_for(meeting):
    with pytest.raises(GroupLost):
        TorchGroup("127.0.0.1", meeting.port, "alone", 0, 2, patience_s=0.2)


def test_a_step_may_take_longer_than_a_meeting(meeting, monkeypatch):
    monkeypatch.setattr("tengen.learners.torch_group._MEETING_S", 1.0)

    def work(group):
        if group.rank == 1:
            time.sleep(2.5)
        return float(group.gather([1.0]).sum())

    assert together(meeting, work) == [SIZE] * SIZE


@pytest.mark.parametrize("num_rows", [7, 24, 130])
@pytest.mark.parametrize(("num_parts", "size"), [(2, 2), (4, 3), (5, 2), (4, 4)])
def test_learners_have_whole_parts_of_a_batch(num_rows, num_parts, size):
    ends = {num_rows * part // num_parts for part in range(num_parts + 1)}
    bounds = row_bounds(num_rows, num_parts, size)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == num_rows
    assert [first for first, _ in bounds[1:]] == [last for _, last in bounds[:-1]]
    assert {end for pair in bounds for end in pair} <= ends
    assert all(first < last for first, last in bounds)


class _Weighed(Update):
    importance_exponent = 0.5
    max_lag = 3


def _batch(first, last):
    """Rows of 8 whose chances, and the steps that their models had, are all others."""
    keys = np.arange(first, last)
    versions = np.array([9, 9, 2, 9, 1, 1, 1, 9])
    return Batch(
        0,
        keys,
        np.array([0.1, 0.2, 0.3, 0.4, 0.01, 0.6, 0.7, 0.8])[first:last],
        {"row": keys, "model_version": versions[first:last, None]},
        100,
        lambda lease, priorities: None,
    )


def test_weights_and_lags_are_those_of_the_whole_batch(meeting):
    """The third learner has old rows alone, and the one of the greatest weight."""
    wanted = rows_to_learn(_batch(0, 8), _Weighed(), ALONE, 10)
    bounds = [(0, 3), (3, 4), (4, 7)]
    found = together(
        meeting,
        lambda group: rows_to_learn(_batch(*bounds[group.rank]), _Weighed(), group, 10),
    )
    rows = np.concatenate([one.arrays["row"] for one in found])
    assert rows.tolist() == [0, 1, 3]
    assert len(found[2].arrays["row"]) == 0
    weights = np.concatenate([one.arrays["importance_weight"] for one in found])
    np.testing.assert_allclose(weights, wanted.arrays["importance_weight"][:3])
    for one in found:
        assert one.num_rows == 3
        assert one.metrics == {"too_old": pytest.approx(4 / 7), "lag_steps": 1.0}


def test_the_scale_of_returns_is_of_all_rows(meeting):
    """Learners' rows are not as many live ones: means of means would be others."""
    rng = np.random.default_rng(3)
    reward = torch.from_numpy(rng.normal(size=(6, 5)).astype(np.float32)) * 9
    terminated = torch.zeros(6, 5)
    is_reset = torch.zeros(6, 5)
    is_reset[:2, 1:] = 1.0
    alone = ReturnScale(0.9)
    alone.observe(reward, terminated, is_reset)

    def work(group):
        scale = ReturnScale(0.9)
        own = slice(2 * group.rank, 2 * group.rank + 2)
        scale.observe(reward[own], terminated[own], is_reset[own], group)
        return scale.value

    found = together(meeting, work)
    assert found == [found[0]] * 3
    assert found[0] == pytest.approx(alone.value, rel=1e-6)
