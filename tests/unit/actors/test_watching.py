"""Who watches the threads of a generation, while they end."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tengen.actors.selfplay import _Snapshots, _watch


class Ending:
    """A thread that ends just after it was last seen alive."""

    def __init__(self) -> None:
        self._seen = iter((True, False))

    def is_alive(self) -> bool:
        return next(self._seen, False)

    def join(self, timeout_s: float) -> None:
        """There is nothing to wait for."""


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_thread_may_end_at_any_instant(num_threads: int) -> None:
    threads: list[Any] = [Ending() for _ in range(num_threads)]
    told: list[tuple[int, int]] = []
    queue: Any = threading.Event()  # nobody asks it for anything
    snapshots = _Snapshots(queue, 1.0, None)
    _watch(threads, [], snapshots, lambda *counts: told.append(counts), 0.0)
    assert told == [(0, 0)]
