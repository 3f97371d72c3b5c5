"""Clients for a learner's table of environment steps, used by followers and actors."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience.config import ReplayConfig
from tengen.experience.steps.item_layout import ItemLayout, unpack_batch
from tengen.experience.steps.mixing import DEMOS, Mixture, joined
from tengen.experience.steps.slot_writer import TABLE, FirstPriorities, SlotWriter
from tengen.store import Batch, Column, StepWriter, Store, StoreTimeout
from tengen.transport import NoAnswer, is_net

_PRIORITY_S = 1.0
# Part of the error from core/store/engine/engine.h if a session holds a writer's name.
_TAKEN = "is open in another client"
_RETRY_S = 0.5


class StepDraws:
    """Samples items from a table of steps, for a leader or a follower (``Followed``).

    A follower samples its items as a client of the table, and updates their priorities
    itself. Items that a follower has not acknowledged when it ends count as never
    sampled. One thread samples batches; another may acknowledge them.

    Args:
        store: The store, or its client (``Store.connect``); ``close`` closes it.
        columns: Columns of a step, by flat name, without the recurrent state.
        layout: Layout of the items.
        config: The table's config.
        mixture: Which elements of a batch are demonstrations; None for none.
        name: The table's name.

    Attributes:
        layout: The layout of the items.
        config: The table's config.
        name: The table's name.
        demos: The table of demonstrations; None if there are none.
    """

    def __init__(
        self,
        store: Store,
        columns: Mapping[str, Column],
        layout: ItemLayout,
        config: ReplayConfig,
        mixture: Mixture | None = None,
        *,
        name: str = TABLE,
    ) -> None:
        self.layout = layout
        self.config = config
        self.name = name
        self.demos: StepDraws | None = None
        if mixture is not None:
            self.demos = StepDraws(store, columns, layout, config, name=DEMOS)
        self._mixture = mixture
        self._store = store
        self._table = store.table(name)
        # The columns that the table stores packed, and their shapes before packing.
        self._packed = {
            name: column.shape
            for name, column in columns.items()
            if self.stored[name] != column
        }
        # Serializes sampling and acknowledgements, which run in different threads.
        self._lock = threading.Lock()

    @property
    def stored(self) -> Mapping[str, Column]:
        """The columns of a step in the table's packed format, by flat name."""
        return self._table.config.columns

    @property
    def num_inserts(self) -> int:
        """Number of items inserted into the table so far."""
        return int(self._table.describe()["num_inserts"])

    @property
    def max_priority(self) -> float:
        """The maximum recent priority, at least 1, for new items without a TD error.

        Source: Schaul et al. 2016, "Prioritized Experience Replay", algorithm 1.

        Differs from the paper, in which the maximum never decreases, so that a single
        outlier sets the priority of all later items.
        """
        if self.config.sampler != "prioritized":
            return 1.0
        return max(1.0, float(self._table.describe()["max_priority"]))

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Returns True, because all learners use one table; see ``Followed.follow``."""
        return True

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``Followed.draw``; ``order`` has the number of the batch."""
        num_demos = 0
        if self._mixture is not None:
            number = int(order["number"])
            num_demos = self._mixture.num_demos(number, num_samples, first, last)
        return self._mixed(last - first - num_demos, num_demos)

    def _mixed(self, num_samples: int, num_demos: int) -> Batch:
        """Samples items of this table, and demonstrations, as one batch."""
        parts = []
        if num_samples:
            parts.append(self.sample_own(num_samples))
        if num_demos:
            assert self.demos is not None
            parts.append(self.demos.sample_own(num_demos))
        return joined(parts)

    def sample_own(self, num_samples: int) -> Batch:
        """Samples items of this table; blocks until its rate limiter allows it.

        Args:
            num_samples: Number B of items, at least 1.

        Returns:
            The batch with columns by flat name, ``[B, T, ...]``, and the recurrent
            states before the items' first steps, ``state/NAME``, ``[B, ...]``.

        Raises:
            RunError: Too few items arrived within ``timeout_s``, or the table is gone.
        """
        try:
            with self._lock:
                drawn = self._table.sample(num_samples, self.config.timeout_s)
        except StoreTimeout as error:
            raise RunError(
                f"experience ({self.name}) had too few items for "
                f"{self.config.timeout_s:g} s; check whether the actors are alive"
            ) from error
        columns = unpack_batch(drawn.columns, self._packed)
        return dataclasses.replace(
            drawn,
            columns=self.layout.join(columns),
            _ack=lambda lease, priorities: self._ack(drawn, priorities),
        )

    def writer(
        self,
        name: str,
        num_slots: int,
        first: FirstPriorities | None = None,
        *,
        num_together: int = 1,
    ) -> SlotWriter:
        """Returns a writer for an actor's slots; see ``SlotWriter``.

        Args:
            name: The actor's name, which must be unique among writers.
            num_slots: Number N of the actor's slots.
            first: Computes the priorities of new items; None for ``max_priority``.
            num_together: See ``SlotWriter``.

        Raises:
            UsageError: Another writer has the name.
        """
        names = [f"{name}/{slot}" for slot in range(num_slots)]
        writers = [self._slot(name) for name in names]
        return SlotWriter(self, writers, first, num_together=num_together)

    def repeating_writer(self, name: str) -> SlotWriter:
        """Returns a writer for one slot that skips the items that ``name`` inserted."""
        return SlotWriter(self, [self._slot(name)], sequence=0)

    def count(self, num_rows: int, num_episodes: int) -> None:
        """Receives counts of written frames and ended episodes; ignored by default."""

    def close(self) -> None:
        """Closes the store or its client; blocked calls raise. Thread-safe."""
        self._store.close()

    def _slot(self, name: str) -> StepWriter:
        reach = self.layout.num_stored
        return self._store.writer(name, self.name, max_item_steps=reach)

    def _ack(self, drawn: Batch, priorities: NDArray[np.float64] | None) -> None:
        if self.config.sampler != "prioritized":
            priorities = None
        with self._lock:
            drawn.ack(priorities)


class StepClient(StepDraws):
    """A client of a ``StepTable`` in another process, which writes or samples steps.

    If the table's process is killed, writers on its host wait for the next process,
    which restores all acknowledged items. Writers connected through ``tcp`` raise, and
    the items that they were writing are lost.

    Args:
        address: The folder of the table's store, or ``tcp://HOST:PORT``.
        layout: Layout of the items; must equal the table's layout.
        config: The table's config.
        patience_s: Maximum seconds to wait until a lost table on this host restarts.
        token: The store's token, for ``tcp``.
        fingerprint: SHA-256 in hex of the store's certificate, for ``tcp``; None for no
            TLS.

    Raises:
        RunError: There is no store at the address.
        UsageError: The store has a different version, or rejects the token.

    Attributes:
        num_rows: Frames written, for reports.
        num_episodes: Ends of episodes written.
        taken_s: Maximum seconds to wait until an earlier session releases a writer's
            name; longer than the store takes to disconnect a host that is gone.
    """

    taken_s = 60.0

    def __init__(
        self,
        address: str,
        layout: ItemLayout,
        config: ReplayConfig,
        patience_s: float = 60.0,
        *,
        token: str | None = None,
        fingerprint: str | None = None,
    ) -> None:
        store = Store.connect(
            address, patience_s=patience_s, token=token, fingerprint=fingerprint
        )
        super().__init__(store, {}, layout, config)
        self.num_rows = 0
        self.num_episodes = 0
        self._is_far = is_net(address)
        self._max_priority = 1.0
        self._asked_s = -_PRIORITY_S

    @property
    def max_priority(self) -> float:
        """The table's maximum recent priority, cached for at most a second."""
        now_s = time.monotonic()
        if now_s - self._asked_s >= _PRIORITY_S:
            self._asked_s = now_s
            self._max_priority = super().max_priority
        return self._max_priority

    def count(self, num_rows: int, num_episodes: int) -> None:
        """Adds to ``num_rows`` and ``num_episodes``."""
        self.num_rows += num_rows
        self.num_episodes += num_episodes

    @staticmethod
    def is_lost(error: Exception) -> bool:
        """Returns whether ``error`` means that the table's process has gone."""
        return isinstance(error, NoAnswer) or isinstance(
            error.__cause__, _core.GoneError
        )

    def _slot(self, name: str) -> StepWriter:
        """Opens a slot's writer; waits while an old session still holds the name.

        After a disconnection of some seconds, the store may not have noticed yet that
        this actor's old session has ended. No other actor can have the name, because
        each actor holds a lock on its own name.
        """
        until = time.monotonic() + self.taken_s
        while True:
            try:
                return super()._slot(name)
            except (UsageError, _core.CoreError) as error:
                is_taken = _TAKEN in str(error)
                if not is_taken or not self._is_far or time.monotonic() >= until:
                    raise
            time.sleep(_RETRY_S)
