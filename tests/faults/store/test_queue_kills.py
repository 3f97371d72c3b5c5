"""A killed unroll queue gives every durable item to the learner again, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from tengen import _core
from tengen.store import ColumnSpec, ItemSchema, QueueConfig, UnrollQueue

SCHEMA = ItemSchema((ColumnSpec(name="value", dtype="int64", shape=()),))
CONFIG = QueueConfig(capacity_items=100, segment_items=4)


def insert_until_killed(directory: Path, incarnation: int, point: str) -> list[int]:
    """Inserts in a forked process that dies at ``point``; returns the durable items."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            queue = UnrollQueue(directory, incarnation, SCHEMA, CONFIG, lambda item: {})
            _core.set_fault(point, _core.FaultAction.KILL, 2)
            for sequence in range(60):
                value = {"value": np.array(sequence)}
                if queue.insert("actor", sequence, value):
                    queue.flush()
                    os.write(write_end, f"{sequence}\n".encode())
        finally:
            os._exit(1)
    os.close(write_end)
    with open(read_end) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return [int(line) for line in text.split("\n")[:-1]]


@pytest.mark.parametrize(
    "point",
    [
        "header_written",
        "renamed",
        "group_half_written",
        "group_written",
        "group_synced",
    ],
)
def test_durable_items_come_again_once(tmp_path: Path, point: str) -> None:
    durable: list[int] = []
    for incarnation in range(3):
        durable += insert_until_killed(
            tmp_path / "queue", incarnation, f"journal.{point}"
        )
    with UnrollQueue(tmp_path / "queue", 3, SCHEMA, CONFIG, lambda item: {}) as queue:
        num_items = queue.samples_available()
        assert num_items >= len(durable) == len(set(durable))
        found = queue.sample(num_items).columns["value"].tolist()
        assert found == list(range(num_items))
        assert set(durable) <= set(found)
