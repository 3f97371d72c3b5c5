"""Samples batches of one table, in advance if the store is remote or has a disk."""

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

__all__ = ["Sampler"]


class Sampler(Closable):
    """Samples batches of one size. For one thread; batches may outlive the sampler.

    A batch counts as used when it is acknowledged. Batches that are not acknowledged
    when the sampler is closed, or when its process ends or is killed, do not count as
    used.

    Args:
        core: The core's sampler.
        config: The table's config.
        check_open: Raises UsageError if the store was closed in this process.
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
        """Returns the next batch. Blocks while the table's rate limiter holds samples.

        Args:
            timeout_s: Maximum wait in seconds; None for no limit.

        Raises:
            StoreTimeout: No batch was available in time; nothing is lost.
            UsageError: The store has refused this client, has ended or was closed in
                this process, or the sampler is closed.
        """
        core = self._open()
        batch = wait_for(
            core.next,
            timeout_s,
            f"sample ({self._config.name})",
            core.waits,
            self._check_open,
        )
        self._lent.add(batch.lease)
        return Batch(
            batch.lease,
            batch.keys,
            batch.probabilities,
            batch.columns,
            batch.table_size,
            self._ack,
        )

    def give_back(self, batch: Batch) -> None:
        """Gives an unused batch back; its items may be sampled again immediately."""
        core = self._open()
        self._check_lent(batch.lease)
        try:
            core.give_back(batch.lease)
        except _core.CoreError as error:
            raise refused(error) from error
        self._lent.discard(batch.lease)

    def close(self) -> None:
        """Closes the sampler and gives unacknowledged batches back. Idempotent.

        The arrays of batches stay valid.
        """
        self._core = None

    def __iter__(self) -> Iterator[Batch]:
        """Yields batches indefinitely."""
        while True:
            yield self.sample()

    def _open(self) -> _core.ReplaySampler:
        if self._core is None:
            raise UsageError(
                f"sampler ({self._config.name}, closed) must be open, because its "
                "batches were given back; open another"
            )
        return self._core

    def _check_lent(self, lease: int) -> None:
        """Refuses an unknown lease, for which a server would end the session."""
        check(
            lease in self._lent,
            "lease",
            lease,
            "must be one that is not acknowledged; acknowledge each batch once",
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
