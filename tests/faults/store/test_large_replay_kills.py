"""A replay larger than its memory keeps the exact bytes of its items after kills."""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.experience import ItemLayout, ReplayConfig, StepTable, plan_steps
from tengen.store import Column
from tests.refusals import refused

FRAME = 7_056
LAYOUT = ItemLayout(num_steps=4, period=1)
COLUMNS = {
    "number": Column(dtype="int64"),
    "pixels": Column(dtype="uint8", shape=(FRAME,)),
    "planes": Column(dtype="bool", shape=(3, 7, 7)),
    "is_reset": Column(dtype="uint8"),
    "truncated": Column(dtype="uint8"),
    "model_version": Column(dtype="int64"),
}
BATCH = 4
BLOCK = 8
# The minimum number of durable items per process.
NUM_ITEMS = 1_500


def columns_of(numbers: NDArray[np.int64]) -> dict[str, NDArray[np.generic]]:
    """Returns steps whose bytes are a function of ``numbers``, ``[1, K]``."""
    pixels = (numbers[..., None] + np.arange(FRAME) * 7) % 251
    planes = (numbers[..., None] >> np.arange(147) % 16) & 1
    return {
        "number": numbers,
        "pixels": pixels.astype(np.uint8),
        "planes": planes.astype(np.bool_).reshape(*numbers.shape, 3, 7, 7),
        "is_reset": np.zeros(numbers.shape, np.uint8),
        "truncated": np.zeros(numbers.shape, np.uint8),
        "model_version": np.zeros(numbers.shape, np.int64),
    }


def open_table(folder: Path, directory: Path | None, more_bytes: int = 0) -> StepTable:
    config = ReplayConfig(
        sampler="prioritized", max_items=10_000, samples_per_item=1e6, timeout_s=300.0
    )
    place = folder / "steps"
    least = plan_steps(
        place, COLUMNS, LAYOUT, config, num_slots=1, batch_size=BATCH
    ).budget.least_memory_bytes
    # Even the steps of one process must not fit in memory.
    assert least < NUM_ITEMS * FRAME / 3
    return StepTable(
        place,
        COLUMNS,
        LAYOUT,
        dataclasses.replace(config, memory_bytes=least + more_bytes),
        seed=1,
        num_slots=1,
        batch_size=BATCH,
        directory=directory,
    )


def act(
    folder: Path,
    directory: Path | None,
    incarnation: int,
    report: Callable[[str], object],
) -> NoReturn:
    """Inserts and samples until killed; reports the item count after each flush."""
    table = open_table(folder, directory)
    writer = table.writer(f"actor-{incarnation}", 1)
    first, num_items = 1_000_000 * incarnation, 0
    while True:
        numbers = np.arange(first, first + BLOCK)[None]
        num_items += writer.append(columns_of(numbers), {})
        first += BLOCK
        if num_items > 2 * BATCH:
            table.sample(BATCH).ack(np.full(BATCH, 0.5))
        if first // BLOCK % 16 == 0:
            table.flush()
            report(f"{num_items}\n")


def run_until_killed(folder: Path, directory: Path | None, incarnation: int) -> int:
    """Runs a process until it is killed; returns the number of its flushed items."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            gc.freeze()  # earlier stores, whose threads do not exist in this process
            os.close(read_end)
            act(
                folder,
                directory,
                incarnation,
                lambda line: os.write(write_end, line.encode()),
            )
        finally:
            os._exit(1)
    os.close(write_end)
    durable = 0
    with open(read_end) as lines:
        for line in lines:
            durable = int(line)
            if durable >= NUM_ITEMS:
                os.kill(pid, signal.SIGKILL)
                break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return durable


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_replay_on_disk_has_its_items_after_kills(
    tmp_path: Path, is_shared: bool
) -> None:
    directory = tmp_path / "shared" if is_shared else None
    told = [run_until_killed(tmp_path, directory, number) for number in range(3)]
    # Only a store without shared memory can be reopened with another memory size.
    more_bytes = 1 << 20
    if directory is not None:
        with refused(UsageError, "memory_bytes"):
            open_table(tmp_path, directory, more_bytes)
        more_bytes = 0
    table = open_table(tmp_path, directory, more_bytes)
    assert table.room.line.endswith(f"the rest on disk in {tmp_path / 'steps'}")
    num_items = table.describe()["num_items"]
    assert num_items >= sum(told) > 3 * NUM_ITEMS
    found: dict[int, int] = {}
    while len(found) < num_items:
        batch = table.sample(BATCH)
        numbers = batch.columns["number"]
        # Lowers the priority, so that unseen items are sampled first.
        batch.ack(np.full(BATCH, 1e-9))
        assert (np.diff(numbers) == 1).all()
        for name, column in columns_of(numbers).items():
            np.testing.assert_array_equal(batch.columns[name], column, name)
        found.update(zip(batch.keys.tolist(), numbers[:, 0].tolist(), strict=True))
    table.close()
    for incarnation, least in enumerate(told):
        mine = sorted(n for n in found.values() if n // 1_000_000 == incarnation)
        assert mine == list(range(mine[0], mine[0] + len(mine)))
        assert len(mine) >= least
    assert len(set(found.values())) == num_items
