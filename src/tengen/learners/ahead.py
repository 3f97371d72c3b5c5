"""The batch that is drawn while another one trains."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tengen.store import Batch

__all__ = ["BatchAhead"]


class BatchAhead:
    """Draws batches one after the other, one ahead at most. For one thread.

    Args:
        sample: Draws a batch, on a thread of this object's own.
    """

    def __init__(self, sample: Callable[[], Batch]) -> None:
        self._sample = sample
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._next: Future[Batch] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a batch is drawn that nobody has taken."""
        return self._next is not None

    def take(self) -> Batch:
        """Returns the batch that is under way, or draws one. Blocks."""
        future = self._next or self._pool.submit(self._sample)
        self._next = None
        return future.result()

    def begin(self) -> None:
        """Begins to draw the next batch; none is under way."""
        self._next = self._pool.submit(self._sample)

    def settle(self) -> None:
        """Blocks until what is under way is drawn."""
        if self._next is not None:
            wait([self._next])

    def close(self) -> None:
        """Ends the thread. Blocks until what is under way is drawn."""
        self._pool.shutdown()
