"""Whole episodes as items: drawn in slices that never leave their episode."""

import multiprocessing
import shutil
import tempfile

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import Column, Selector, Store, StoreConfig, TableConfig
from tests.refusals import refused

# Of steps; a chunk has four.
LENGTHS = (3, 4, 17, 5, 40, 3, 9)
NUM_STEPS = 3


def config(**fields):
    return TableConfig(
        name="episodes",
        columns={
            "episode": Column(dtype="int64"),
            "step": Column(dtype="int32"),
        },
        **{"num_steps": NUM_STEPS, "steps_per_chunk": 4, **fields},
    )


def write(store, lengths=LENGTHS, writer="a"):
    with store.writer(writer, "episodes") as sender:
        for episode, length in enumerate(lengths):
            for step in range(length):
                sender.append({"episode": episode, "step": np.int32(step)})
            sender.insert("episodes", length)


def write_there(directory):
    write(Store.connect(directory))


def slices_of(batch):
    """Episode and first step of each sample, which must be one slice of its episode."""
    slices = []
    for episodes, steps in zip(
        batch.columns["episode"], batch.columns["step"], strict=True
    ):
        first = int(steps[0])
        assert (episodes == episodes[0]).all()
        assert 0 <= first <= LENGTHS[episodes[0]] - NUM_STEPS
        assert steps.tolist() == list(range(first, first + NUM_STEPS))
        slices.append((int(episodes[0]), first))
    return slices


def check_draws(store):
    table = store.table("episodes")
    assert table.describe()["num_steps"] == sum(LENGTHS)
    drawn = {}
    for _ in range(60):
        batch = table.sample(100)
        for one, probability in zip(slices_of(batch), batch.probabilities, strict=True):
            drawn[one] = drawn.get(one, 0) + 1
            num_slices = LENGTHS[one[0]] - NUM_STEPS + 1
            assert probability == pytest.approx(1 / len(LENGTHS) / num_slices)
        batch.ack()
    every = {
        (episode, first)
        for episode, length in enumerate(LENGTHS)
        for first in range(length - NUM_STEPS + 1)
    }
    assert set(drawn) == every  # each is expected 22 times or more


def test_slices_cover_their_episodes_evenly(open_store):
    store = open_store(config())
    write(store)
    check_draws(store)


def test_episodes_come_from_other_processes():
    folder = tempfile.mkdtemp(prefix="tengen-")
    try:
        with Store(
            StoreConfig.of([config()], seed=3, directory=folder + "/store")
        ) as store:
            process = multiprocessing.get_context("spawn").Process(
                target=write_there, args=(folder + "/store",)
            )
            process.start()
            process.join()
            assert process.exitcode == 0
            check_draws(Store.connect(folder + "/store"))
            check_draws(store)
    finally:
        shutil.rmtree(folder)


def test_old_episodes_leave_whole(open_store):
    # A capacity in bytes, as episodes differ in length.
    step_bytes = config().step_bytes
    store = open_store(config(max_bytes=60 * step_bytes))
    write(store)
    held = store.table("episodes").describe()
    assert (held["num_items"], held["num_steps"]) == (4, 5 + 40 + 3 + 9)
    episodes = {one for one, _ in slices_of(store.table("episodes").sample(200))}
    assert episodes == {3, 4, 5, 6}


def test_an_episode_shorter_than_a_sample_is_refused(open_store):
    store = open_store(config(sampler=Selector(kind="fifo")))
    with refused(UsageError, "num_steps (2)"):
        write(store, [2])
