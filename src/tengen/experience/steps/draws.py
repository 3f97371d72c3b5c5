"""Draws items of a table of steps: in the store's own process, or as a client."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.steps.item_layout import ItemLayout
from tengen.experience.steps.packing import unpack_batch
from tengen.experience.steps.slot_writer import TABLE
from tengen.store import Batch, Column, Store, StoreTimeout

__all__ = ["StepDraws"]


class StepDraws:
    """Items of a table of steps; ``Followed``, and the leader's own draws.

    A following learner draws its items as a client of the table, and writes their
    priorities back by itself. Items that it has not acknowledged when it ends count as
    never drawn. One thread draws; another one acknowledges batches.

    Args:
        store: The store, or a client of it (``Store.connect``); closed by ``close``.
        columns: Columns of a step, by flat name, without the state.
        layout: Layout of the items.
        config: The table's config.
    """

    def __init__(
        self,
        store: Store,
        columns: Mapping[str, Column],
        layout: ItemLayout,
        config: ReplayConfig,
    ) -> None:
        self._store = store
        self._columns = columns
        self._layout = layout
        self._config = config
        self._table = store.table(TABLE)
        # A draw may wait for writers while another thread acknowledges a batch.
        self._lock = threading.Lock()

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Returns True; see ``Followed.follow``: the table itself is shared."""
        return True

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``Followed.draw``."""
        return self.sample(last - first)

    def sample(self, num_samples: int) -> Batch:
        """Draws items; waits until there are enough.

        Args:
            num_samples: Number B of items.

        Returns:
            The batch: columns by flat name ``[B, T, ...]``, and the states of the
            first steps, ``state/NAME`` ``[B, ...]``.

        Raises:
            RunError: Too few items came within ``timeout_s``, or the table is gone.
        """
        try:
            with self._lock:
                drawn = self._table.sample(num_samples, self._config.timeout_s)
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
        """See ``Followed.close``."""
        self._store.close()

    def _ack(self, drawn: Batch, priorities: NDArray[np.float64] | None) -> None:
        if self._config.sampler != "prioritized":
            priorities = None
        with self._lock:
            drawn.ack(priorities)
