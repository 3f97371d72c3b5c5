"""Who watches the threads of a generation, while they end."""

import threading

import pytest

from tengen.actors.selfplay import _Snapshots, _watch


class Ending:
    """A thread that ends just after it was last seen alive."""

    def __init__(self):
        self._seen = iter((True, False))

    def is_alive(self):
        return next(self._seen, False)

    def join(self, timeout_s):
        """There is nothing to wait for."""


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_thread_may_end_at_any_instant(num_threads):
    threads = [Ending() for _ in range(num_threads)]
    told = []
    queue = threading.Event()  # nobody asks it for anything
    snapshots = _Snapshots(queue, 1.0, None)
    _watch(threads, [], snapshots, lambda *counts: told.append(counts), 0.0)
    assert told == [(0, 0)]
