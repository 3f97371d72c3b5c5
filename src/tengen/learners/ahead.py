"""Draws the next batch while another one trains."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tengen.store import Batch

__all__ = ["BatchAhead"]


class BatchAhead:
    """Draws batches one after the other, at most one ahead. Not thread-safe.

    Args:
        sample: Draws a batch; called on this object's own thread.
    """

    def __init__(self, sample: Callable[[], Batch]) -> None:
        self._sample = sample
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._next: Future[Batch] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a draw has begun whose batch has not been taken."""
        return self._next is not None

    def take(self) -> Batch:
        """Returns the batch that is under way, or draws one. Blocks."""
        future = self._next or self._pool.submit(self._sample)
        self._next = None
        return future.result()

    def begin(self) -> None:
        """Begins to draw the next batch; no draw may be under way."""
        self._next = self._pool.submit(self._sample)

    def settle(self) -> None:
        """Blocks until a draw that is under way has ended."""
        if self._next is not None:
            wait([self._next])

    def close(self) -> None:
        """Ends the thread. Blocks until a draw that is under way has ended."""
        self._pool.shutdown()
