"""Parts of batches of steps, for learners that follow another one."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.steps.item_layout import ItemLayout
from tengen.experience.steps.packing import unpack_batch
from tengen.experience.steps.slot_writer import TABLE
from tengen.store import Batch, Column, Store, StoreTimeout, Table

__all__ = ["StepPart"]


class StepPart:
    """Items of a table of steps in another process; an ``ExperiencePart``.

    It draws its items as a client of the table, and writes their priorities back by
    itself. Items that it has not acknowledged when it ends count as never drawn.

    Args:
        connect: Returns a client of the table's store; see ``Store.connect``.
        columns: Columns of a step, by flat name, without the state.
        layout: Layout of the items.
        config: The table's config.
    """

    def __init__(
        self,
        connect: Callable[[], Store],
        columns: Mapping[str, Column],
        layout: ItemLayout,
        config: ReplayConfig,
    ) -> None:
        self._connect = connect
        self._columns = columns
        self._layout = layout
        self._config = config
        self._store: Store | None = None
        self._table: Table | None = None
        # A sampler may be used by only one thread at a time.
        self._lock = threading.Lock()

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """See ``ExperiencePart.catch_up``: connects at the first call."""
        if self._store is None:
            self._store = self._connect()
            self._table = self._store.table(TABLE)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``ExperiencePart.draw``.

        Raises:
            RunError: Too few items came within ``timeout_s``, or the table is gone.
        """
        assert self._table is not None
        try:
            with self._lock:
                drawn = self._table.sample(last - first, self._config.timeout_s)
        except StoreTimeout as error:
            raise RunError(
                f"experience ({TABLE}) was short of items for "
                f"{self._config.timeout_s:g} s; look for a dead actor"
            ) from error
        stored = self._table.config.columns
        columns = unpack_batch(drawn.columns, self._columns, stored)
        return dataclasses.replace(
            drawn,
            columns=self._layout.join(columns),
            _ack=lambda lease, priorities: self._ack(drawn, priorities),
        )

    def close(self) -> None:
        """See ``ExperiencePart.close``."""
        if self._store is not None:
            self._store.close()

    def _ack(self, drawn: Batch, priorities: NDArray[np.float64] | None) -> None:
        if self._config.sampler != "prioritized":
            priorities = None
        with self._lock:
            drawn.ack(priorities)
