"""A sampler of batches, which samples in advance if the store is remote or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.closable import Closable
from tengen.config import check
from tengen.errors import UsageError
from tengen.store.arguments import vector_of
from tengen.store.batch import Batch
from tengen.store.configs.table_config import TableConfig
from tengen.store.waiting import refused, wait_for


class Sampler(Closable):
    """Samples batches of a fixed size from a table. For one thread.

    A batch counts as used when it is acknowledged. Unacknowledged batches do not count
    as used after the sampler has been closed or its process has ended. The arrays of a
    batch may outlive the sampler.

    Args:
        core: The core's sampler.
        config: The table's config.
        check_open: Raises UsageError if the store has been closed in this process.
    """

    def __init__(
        self,
        core: _core.ReplaySampler,
        config: TableConfig,
        check_open: Callable[[], None],
    ) -> None:
        self._core: _core.ReplaySampler | None = core
        self._config = config
        self._check_open = check_open
        self._lent: set[int] = set()

    def sample(self, timeout_s: float | None = None) -> Batch:
        """Returns the next batch. Blocks while the rate limiter makes samples wait.

        Args:
            timeout_s: Maximum wait in seconds; None for no limit.

        Raises:
            StoreTimeout: The timeout expired; no batch is lost.
            UsageError: The store has rejected this client, has ended or has been closed
                in this process, or the sampler is closed.
        """
        core = self._open()
        batch = wait_for(
            core.next,
            timeout_s,
            f"sample ({self._config.name})",
            core.waits,
            self._check_open,
        )
        self._lent.add(batch[0])
        return Batch(*batch, self._ack)

    def give_back(self, batch: Batch) -> None:
        """Returns an unused batch to the store, which may sample its items again."""
        core = self._open()
        self._check_lent(batch.lease)
        try:
            core.give_back(batch.lease)
        except _core.CoreError as error:
            raise refused(error) from error
        self._lent.discard(batch.lease)

    def close(self) -> None:
        """Closes the sampler and gives back unacknowledged batches. Idempotent.

        The arrays of all batches remain valid.
        """
        self._core = None

    def __iter__(self) -> Iterator[Batch]:
        """Yields sampled batches indefinitely."""
        while True:
            yield self.sample()

    def _open(self) -> _core.ReplaySampler:
        if self._core is None:
            raise UsageError(
                f"sampler ({self._config.name}, closed) has returned its batches; open "
                "another"
            )
        return self._core

    def _check_lent(self, lease: int) -> None:
        """Raises an error for an unknown lease; a server would end the session."""
        check(
            lease in self._lent,
            "lease",
            lease,
            "is unknown or already acknowledged; acknowledge each batch once",
        )

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        core = self._open()
        self._check_lent(lease)
        if priorities is not None:
            self._config.check_priorities()
            priorities = vector_of("priorities", priorities)
        try:
            core.ack(lease, priorities)
        except _core.CoreError as error:
            raise refused(error) from error
        self._lent.discard(lease)
