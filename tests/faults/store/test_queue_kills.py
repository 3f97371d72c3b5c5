"""A killed unroll queue gives a learner each item once, by the learner's checkpoint."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from tengen.store import Column, QueueConfig, UnrollQueue

COLUMNS = {"value": Column(dtype="int64")}
CONFIG = QueueConfig(capacity_items=8, timeout_s=20.0)


def open_queue(folder: Path, state: dict[str, object] | None) -> UnrollQueue:
    return UnrollQueue(folder / "queue", COLUMNS, CONFIG, lambda item: {}, state)


def read_checkpoint(folder: Path) -> tuple[list[int], dict[str, object] | None]:
    path = folder / "checkpoint"
    if not path.exists():
        return [], None
    checkpoint = json.loads(path.read_text())
    return checkpoint["learned"], checkpoint["queue"]


def live(folder: Path, seed: int) -> NoReturn:
    """Acts and learns until it is killed; tells what is durable."""
    rng = random.Random(seed)
    learned, state = read_checkpoint(folder)
    with open_queue(folder, state) as queue, (folder / "durable").open("a") as told:
        while True:
            for _ in range(rng.randrange(8)):
                if queue.samples_available() < CONFIG.capacity_items:
                    sequence = queue.next_sequence("actor")
                    assert queue.insert("actor", sequence, {"value": sequence})
            if rng.random() < 0.5:
                queue.flush()
                told.write(f"{queue.next_sequence('actor') - 1}\n")
                told.flush()
            for _ in range(rng.randrange(3)):
                if queue.samples_available() >= 3:
                    batch = queue.sample(3)
                    learned += batch.columns["value"].tolist()
                    batch.ack()
            if rng.random() < 0.3:
                continue
            state = queue.state()
            part = folder / "checkpoint.part"
            part.write_text(json.dumps({"learned": learned, "queue": state}))
            part.rename(folder / "checkpoint")
            queue.trim(state)


def run_until_killed(folder: Path, seed: int) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            live(folder, seed)
        finally:
            os._exit(1)
    before = len(read_checkpoint(folder)[0])
    end = time.monotonic() + 60.0
    while len(read_checkpoint(folder)[0]) < before + 10:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
        assert time.monotonic() < end
        time.sleep(0.002)
    time.sleep(random.Random(seed).uniform(0.0, 0.03))
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def run_with_kills(folder: Path, num_kills: int, seed: int) -> None:
    for kill in range(num_kills):
        run_until_killed(folder, 1000 * seed + kill)
        learned, _ = read_checkpoint(folder)
        assert learned == list(range(len(learned)))
    durable = [int(line) for line in (folder / "durable").read_text().split()]
    learned, state = read_checkpoint(folder)
    with open_queue(folder, state) as queue:
        # More than the capacity, where those of batches that were lost come again.
        while num_items := min(queue.samples_available(), CONFIG.capacity_items):
            learned += queue.sample(num_items).columns["value"].tolist()
    assert learned == list(range(len(learned)))
    assert len(learned) > max(durable)


def test_a_killed_learner_learns_from_every_item_once(tmp_path: Path) -> None:
    run_with_kills(tmp_path, num_kills=12, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_a_learner_killed_often_learns_from_every_item_once(
    tmp_path: Path, seed: int
) -> None:
    run_with_kills(tmp_path, num_kills=100, seed=seed)


def test_a_stopped_queue_that_was_not_saved_gives_all_again(tmp_path: Path) -> None:
    with open_queue(tmp_path, None) as queue:
        for sequence in range(6):
            queue.insert("actor", sequence, {"value": np.array(sequence)})
        queue.sample(4).ack()  # and the learner never made a checkpoint
    with open_queue(tmp_path, None) as queue:
        assert queue.sample(6).columns["value"].tolist() == list(range(6))
