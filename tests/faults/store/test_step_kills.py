"""A killed process loses no flushed step of a replay; a queue restarts empty."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from step_blocks import STATE, Steps, block, check_states, numbers_of

from tengen.experience import ItemLayout

LAYOUTS = {
    "single": ItemLayout(num_steps=3, period=1),
    "overlapping": ItemLayout(num_steps=9, period=4, state=STATE),
    "closed": ItemLayout(num_steps=5, period=4, is_closed=True, state=STATE),
}
NUM_SLOTS = 2
BATCH = 64
# Spacing of step numbers, so that a number identifies the process of its step.
STEPS_OF_INCARNATION = 100_000


def open_steps(folder: Path, layout: ItemLayout, sampler: str) -> Steps:
    settings: dict[str, Any] = {"sampler": sampler, "max_items": 100_000}
    if sampler != "fifo":
        settings["samples_per_item"] = 1e6
    return Steps(
        folder,
        layout,
        num_slots=NUM_SLOTS,
        batch_size=BATCH,
        timeout_s=300.0,
        **settings,
    )


def act(
    folder: Path,
    layout: ItemLayout,
    sampler: str,
    incarnation: int,
    report: Callable[[str], object],
) -> NoReturn:
    """Appends, samples and flushes until killed; reports the durable item count."""
    rng = random.Random(incarnation)
    steps = open_steps(folder, layout, sampler)
    steps.num_steps = STEPS_OF_INCARNATION * incarnation
    num_items = 0
    while True:
        for _ in range(rng.randrange(1, 4)):
            report("append\n")
            num_items += steps.append(layout.block_steps(rng.randrange(1, 8)))
        if sampler != "fifo" and num_items > BATCH and rng.random() < 0.5:
            batch = steps.table.sample(BATCH)
            batch.ack(np.array([rng.uniform(0.1, 5.0) for _ in range(BATCH)]))
        report("flush\n")
        steps.table.flush()
        report(f"durable {num_items}\n")


def run_until_killed(
    folder: Path, layout: ItemLayout, sampler: str, incarnation: int
) -> int:
    """Kills a process at a random operation; returns its last reported item count."""
    rng = random.Random(1000 + incarnation)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            gc.freeze()  # earlier stores, whose threads do not exist in this process
            os.close(read_end)
            act(
                folder,
                layout,
                sampler,
                incarnation,
                lambda line: os.write(write_end, line.encode()),
            )
        finally:
            os._exit(1)
    os.close(write_end)
    last = rng.choice(["append", "flush", "durable"])
    num_left = rng.randrange(1, 12)
    durable = 0
    with open(read_end) as lines:
        for line in lines:
            word, *count = line.split()
            durable = int(count[0]) if count else durable
            num_left -= word == last
            if num_left == 0:
                time.sleep(rng.uniform(0.0, 0.01))
                os.kill(pid, signal.SIGKILL)
                num_left = -1
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return durable


def check_items(folder: Path, layout: ItemLayout, sampler: str) -> list[int]:
    """Checks all bytes of all items.

    Returns:
        The sorted numbers of the items' first steps.
    """
    found: dict[int, int] = {}
    with open_steps(folder, layout, sampler) as steps:
        num_items = steps.table.describe()["num_items"]
        while len(found) < num_items:
            batch = steps.table.sample(BATCH)
            batch.ack()
            columns = dict(batch.columns)
            numbers = columns["observation/number"]
            first = numbers[:, 0]
            np.testing.assert_array_equal(
                numbers, first[:, None] + np.arange(layout.num_steps)
            )
            for name, column in block(numbers).items():
                np.testing.assert_array_equal(columns[name], column)
            check_states(layout, columns, first)
            found.update(zip(batch.keys.tolist(), first.tolist(), strict=True))
    assert len(set(found.values())) == len(found) == num_items
    return sorted(found.values())


def prefixes(layout: ItemLayout, firsts: list[int], incarnation: int) -> int:
    """Returns the number of a process's items; no slot may lack an earlier item."""
    num_items = 0
    for slot in range(NUM_SLOTS):
        begin = int(
            numbers_of(NUM_SLOTS, STEPS_OF_INCARNATION * incarnation, 1)[slot, 0]
        )
        mine = [first - begin for first in firsts if 0 <= first - begin < 1000]
        assert mine == list(range(0, layout.period * len(mine), layout.period))
        num_items += len(mine)
    return num_items


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sampler", ["uniform", "prioritized"])
def test_what_a_killed_replay_had_flushed_is_there_once(
    tmp_path: Path, sampler: str, layout: str
) -> None:
    durable: list[int] = []
    for incarnation in range(6):
        told = run_until_killed(tmp_path / "run", LAYOUTS[layout], sampler, incarnation)
        # Checks a copy, because the next process must find the files of the kill.
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        firsts = check_items(tmp_path / "copy", LAYOUTS[layout], sampler)
        shutil.rmtree(tmp_path / "copy")
        durable.append(told)
        for number, least in enumerate(durable):
            num_items = prefixes(LAYOUTS[layout], firsts, number)
            assert num_items >= least
            # Items that survive one kill must survive the next kills.
            durable[number] = num_items
        assert sum(durable) == len(firsts)
    assert sum(durable) > 100


def test_a_killed_queue_leaves_nothing_and_begins_anew(tmp_path: Path) -> None:
    layout = LAYOUTS["closed"]
    assert run_until_killed(tmp_path, layout, "fifo", 3) > 0
    assert list(tmp_path.iterdir()) == []
    with open_steps(tmp_path, layout, "fifo") as steps:
        assert steps.table.available() == steps.table.refresh() == 0
        assert steps.append(4) == NUM_SLOTS
        assert steps.all_items()["observation/number"][:, 0].tolist() == [0, 1000]


def test_a_queue_is_whole_and_has_its_room_after_its_learner_was_killed(
    tmp_path: Path,
) -> None:
    def queue() -> Steps:
        return Steps(
            tmp_path,
            LAYOUTS["closed"],
            batch_size=2,
            directory=tmp_path / "shared",
            sampler="fifo",
            max_items=4,
            timeout_s=5.0,
        )

    pid = os.fork()
    if pid == 0:
        try:
            gc.freeze()  # earlier stores, whose threads do not exist in this process
            steps = queue()
            for _ in range(4):
                steps.append(4)
            held = [steps.table.sample(2), steps.table.sample(2)]
            for _ in range(4):  # while the learner holds two batches
                steps.append(4)
            assert len(held) == 2
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    with queue() as steps:
        assert steps.table.available() == 8
        first = steps.table.sample(8)
        assert dict(first.columns)["observation/number"][:, 0].tolist() == [
            *range(0, 32, 4)
        ]
        first.ack()
        steps.num_steps = 32
        assert [steps.append(4) for _ in range(4)] == [1, 1, 1, 1]
