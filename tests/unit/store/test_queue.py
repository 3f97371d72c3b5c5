from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.errors import RunError, UsageError
from tengen.store import Batch, Column, QueueConfig, UnrollQueue

COLUMNS = {
    "observation": Column(dtype="uint8", shape=(2, 3)),
    "action": Column(dtype="int32", shape=(2,)),
}


def columns(value: int) -> dict[str, NDArray[np.generic]]:
    return {
        "observation": np.full((2, 3), value, np.uint8),
        "action": np.full(2, -value, np.int32),
    }


def values(batch: Batch) -> list[int]:
    found = [-int(value) for value in batch.columns["action"][:, 0]]
    assert batch.columns["observation"][:, 1, 2].tolist() == found
    return found


def open_queue(
    path: Path, state: Mapping[str, Any] | None = None, **options: Any
) -> UnrollQueue:
    config = QueueConfig(**options)
    return UnrollQueue(path / "queue", COLUMNS, config, sum_of_actions, state)


def sum_of_actions(item: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    return {"num_rows": len(item["action"]), "total": -int(item["action"].sum())}


def in_thread(work: Callable[[], object]) -> Callable[[], list[object]]:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except RunError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def finish() -> list[object]:
        thread.join()
        return results

    return finish


def test_items_come_first_in_first_out_and_once(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        for sequence in range(6):
            assert queue.insert("a", sequence, columns(sequence))
        batch = queue.sample(4)
        assert values(batch) == [0, 1, 2, 3]
        assert batch.keys.tolist() == [0, 1, 2, 3]
        assert batch.probabilities.tolist() == [1.0] * 4
        assert batch.columns["observation"].shape == (4, 2, 3)
        assert queue.samples_available() == 2
        assert values(queue.sample(2)) == [4, 5]


def test_an_item_sent_again_is_heard_once(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        assert queue.insert("a", 0, columns(1))
        assert queue.insert("b", 0, columns(2))
        assert not queue.insert("a", 0, columns(1))
        assert values(queue.sample(2)) == [1, 2]
        assert not queue.insert("b", 0, columns(2))


def test_inserted_arrays_are_copied(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        reused = columns(1)
        queue.insert("a", 0, reused)
        reused["action"][:] = 9
        assert values(queue.sample(1)) == [1]


def test_a_full_queue_holds_the_sender_back(tmp_path: Path) -> None:
    with open_queue(tmp_path, capacity_items=2) as queue:
        queue.insert("a", 0, columns(0))
        queue.insert("a", 1, columns(1))
        finish = in_thread(lambda: queue.insert("a", 2, columns(2)))
        assert values(queue.sample(1)) == [0]
        assert finish() == [True]
        assert values(queue.sample(2)) == [1, 2]


def test_a_sample_waits_for_its_items(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        finish = in_thread(lambda: values(queue.sample(2)))
        queue.insert("a", 0, columns(0))
        queue.insert("b", 0, columns(1))
        assert finish() == [[0, 1]]


def test_waiting_ends_by_the_timeout_or_by_close(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, capacity_items=1, timeout_s=0.01)
    with pytest.raises(RunError, match=r"short of items for 0\.01 s"):
        queue.sample(1)
    queue.insert("a", 0, columns(0))
    with pytest.raises(RunError, match="full for"):
        queue.insert("a", 1, columns(1))
    with pytest.raises(UsageError, match="capacity_items"):
        queue.sample(2)
    queue.close()
    waiting = open_queue(tmp_path)
    waiting.sample(1)
    finish = in_thread(lambda: waiting.sample(1))
    waiting.close()
    waiting.close()
    assert "closed" in str(finish()[0])


def test_what_was_not_acknowledged_comes_again_after_a_restart(tmp_path: Path) -> None:
    queue = open_queue(tmp_path)
    for sequence in range(6):
        queue.insert("ab"[sequence % 2], sequence, columns(sequence))
    queue.sample(2).ack()
    queue.sample(2)  # drawn, and lost with the process
    state = json.loads(json.dumps(queue.state()))
    queue.close()
    with open_queue(tmp_path, state) as resumed:
        assert not resumed.insert("b", 5, columns(5))  # the sender repeats itself
        assert resumed.insert("a", 6, columns(6))
        batch = resumed.sample(5)
        assert values(batch) == [2, 3, 4, 5, 6]
        assert batch.keys.tolist() == [2, 3, 4, 5, 6]
        assert batch.lease == 1
        batch.ack()
        assert resumed.state()["num_used"] == 7


def test_a_second_restart_finds_every_item_once(tmp_path: Path) -> None:
    for restart in range(3):
        with open_queue(tmp_path) as queue:
            for sequence in range(3):
                queue.insert("a", 3 * restart + sequence, columns(sequence))
    with open_queue(tmp_path) as queue:
        batch = queue.sample(9)
        assert values(batch) == [0, 1, 2] * 3
        assert batch.keys.tolist() == list(range(9))


def test_items_go_when_a_checkpoint_counts_them_as_used(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        for sequence in range(7):
            queue.insert("a", sequence, columns(sequence))
        queue.sample(3).ack()
        state = queue.state()
        queue.sample(2).ack()  # after that checkpoint of the learner
        queue.sample(1)
        assert queue.trim(state) == 3
        assert queue.trim(state) == 0
    with open_queue(tmp_path, state) as resumed:
        assert values(resumed.sample(4)) == [3, 4, 5, 6]


def test_a_kill_between_the_two_checkpoints_doubles_nothing(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        for sequence in range(6):
            queue.insert("a", sequence, columns(sequence))
        queue.flush()
        queue.sample(4).ack()
        state = json.loads(json.dumps(queue.state()))
    # The learner's checkpoint is there, and trim was never called.
    with open_queue(tmp_path, state) as resumed:
        assert resumed.describe()["num_items"] == 2
        batch = resumed.sample(2)
        assert (values(batch), batch.keys.tolist()) == ([4, 5], [4, 5])


def test_a_queue_takes_its_fill_again_after_restarts(tmp_path: Path) -> None:
    """Nothing of what was lent or looked at takes room for ever."""
    state: dict[str, Any] = {}
    sequence = 0
    for _ in range(5):
        with open_queue(tmp_path, state, capacity_items=4, timeout_s=5.0) as queue:
            for _ in range(10):
                while queue.samples_available() < 4:
                    assert queue.insert("a", sequence, columns(sequence % 100))
                    sequence += 1
                batch = queue.sample(2)
                assert values(batch) == [int(key) % 100 for key in batch.keys]
                batch.ack()
                state = queue.state()
                queue.trim(state)
            queue.sample(2)  # lost
    assert queue.state()["num_used"] == 100


def test_a_turn_is_counted_once_however_often_the_queue_is_opened(
    tmp_path: Path,
) -> None:
    with open_queue(tmp_path) as queue:
        assert (queue.refresh(), queue.generation) == (0, 0)
        for sequence in range(4):
            queue.insert("a", sequence, columns(sequence))
        assert (queue.refresh(), queue.generation) == (4, 1)
        queue.sample(2).ack()
        assert (queue.refresh(), queue.generation) == (0, 1)
        state = json.loads(json.dumps(queue.state()))
        queue.insert("a", 4, columns(4))
    with open_queue(tmp_path, state) as resumed:
        assert resumed.describe()["num_items"] == 3
        # Two of the items had been seen, one had not.
        assert (resumed.refresh(), resumed.generation) == (1, 2)
        assert (resumed.refresh(), resumed.generation) == (0, 2)


def test_counts_are_of_all_items_whether_used_lent_or_waiting(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        for sequence in range(1, 6):
            queue.insert("a", sequence, columns(sequence))
        expected = {"num_rows": 10, "total": 2 * (1 + 2 + 3 + 4 + 5)}
        assert queue.describe() == {"num_items": 5, **expected}
        queue.sample(2).ack()
        queue.sample(1)  # lent, and lost with the process
        assert queue.describe() == {"num_items": 2, **expected}
        state = json.loads(json.dumps(queue.state()))
        queue.trim(state)
    with open_queue(tmp_path, state) as resumed:
        assert resumed.describe() == {"num_items": 3, **expected}
        resumed.sample(3).ack()
        assert resumed.describe() == {"num_items": 0, **expected}


def test_batches_are_acknowledged_in_order(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        for sequence in range(4):
            queue.insert("a", sequence, columns(sequence))
        first, second = queue.sample(2), queue.sample(2)
        with pytest.raises(UsageError, match=r"lease \(1\)"):
            second.ack()
        with pytest.raises(UsageError, match="priorities"):
            first.ack(np.ones(2))
        first.ack()
        second.ack()


def test_other_columns_are_refused(tmp_path: Path) -> None:
    with open_queue(tmp_path) as queue:
        queue.insert("a", 0, columns(0))
        with pytest.raises(UsageError, match="observation"):
            queue.insert("a", 1, {"action": np.zeros(2, np.int32)})
        with pytest.raises(UsageError, match="action"):
            queue.insert("a", 1, {**columns(1), "action": np.zeros(3, np.int32)})
        assert queue.insert("a", 1, columns(1))
        assert values(queue.sample(2)) == [0, 1]
    other = {"x": Column(dtype="uint8", shape=())}
    with pytest.raises(UsageError, match="columns"):
        UnrollQueue(tmp_path / "queue", other, QueueConfig(), lambda item: {})


def test_a_queue_is_one_process_s(tmp_path: Path) -> None:
    with open_queue(tmp_path), pytest.raises(UsageError, match="running"):
        open_queue(tmp_path)


def test_a_queue_that_is_made_shorter_keeps_its_items(tmp_path: Path) -> None:
    with open_queue(tmp_path, capacity_items=120) as queue:
        for i in range(120):
            queue.insert("a", i, columns(i))
        queue.sample(2).ack()
        state = queue.state()
    for first in (2, 4):
        with open_queue(tmp_path, state, capacity_items=1) as queue:
            assert queue.samples_available() == 120 - first
            for i in (first, first + 1):
                batch = queue.sample(1)
                assert values(batch) == [i]
                batch.ack()
            state = queue.state()


def test_items_that_are_used_and_not_trimmed_are_told(tmp_path: Path) -> None:
    with open_queue(tmp_path, capacity_items=2, timeout_s=0.3) as queue:

        def use() -> None:
            for i in range(200):
                queue.insert("a", i, columns(0))
                queue.sample(1).ack()

        told = (
            r"has \d+ items that were used and not trimmed, for 0.3 s; trim more often"
        )
        with pytest.raises(RunError, match=told):
            use()
        queue.trim(queue.state())
        num_used = queue.state()["num_used"]
        assert num_used >= 2 * 2 + 64
        assert queue.insert("a", num_used, columns(0))
        # Full of what waits, as a learner that died leaves it.
        assert queue.insert("a", num_used + 1, columns(0))
        with pytest.raises(RunError, match=r"was full for 0\.3 s; look for a dead"):
            queue.insert("a", num_used + 2, columns(0))


def test_bad_settings_are_refused_by_field() -> None:
    for field, value in {"capacity_items": 0, "timeout_s": 0.0}.items():
        with pytest.raises(UsageError, match=rf"{field} \({value}\)"):
            QueueConfig(**{field: value})
