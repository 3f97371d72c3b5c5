"""Environment steps as ``Experience``, in a store table whose items are step slices.

::

    steps = StepTable(
        folder, columns, layout, ReplayConfig(), seed, num_slots=16, batch_size=32
    )
    writer = steps.writer("actor-0", 16)
    writer.append(columns, state)               # [N, K, ...], one block per slot
    steps.flush()                               # blocks until the replay is durable
    while steps.available() >= 32:
        batch = steps.sample(32)                # [32, T, ...]
        batch.ack(priorities)

Source: Cassirer et al. 2021, "Reverb: a framework for experience replay", section 3,
for items that are slices of steps, and for storing each step once.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen.config import check
from tengen.experience.config import ReplayConfig
from tengen.experience.experience import Divided
from tengen.experience.steps.client import StepDraws
from tengen.experience.steps.item_layout import ItemLayout
from tengen.experience.steps.mixing import Mixture
from tengen.experience.steps.room import plan_steps
from tengen.experience.steps.slot_writer import FirstPriorities, SlotWriter
from tengen.store import Batch, Column, Store, StoreConfig
from tengen.transport import NetDoor

# Maximum number of batches that are sampled in sequence, and of their bytes. More
# would leave the processor's cache.
_MOST_TOGETHER = 16
_MOST_BYTES = 1 << 20


class StepTable(StepDraws):
    """A table of steps as ``Experience``. One thread samples; other threads may write.

    Args:
        folder: Folder on a disk for the steps of a replay. A queue is in memory only,
            because after a restart its items would come from outdated policies.
        columns: Columns of a step, by flat name, without the recurrent state.
        layout: Layout of the items.
        config: The table's config.
        seed: Seed of the random generator.
        state: A result of the method ``state`` with counters to restore, or None.
        num_slots: Total number of slots of all writers, for planning the memory.
        batch_size: Maximum number of items in a batch, for planning the memory.
        directory: Shared-memory directory through which actors in other processes of
            this host connect with ``StepClient``. After a kill, the next process
            restores all inserted items, even of a queue. None: no other process
            connects.
        net: Listener for actors on other hosts; None: no other host connects.
        mixture: Which elements of a batch are demonstrations; None for none.
        num_demos: Number of items of demonstrations, which ``demos`` receives.

    Raises:
        UsageError: Another process has the table open, the folder's steps have
            different columns, or the table does not fit in the memory or on the disk.
        RunError: The disk is full or fails.

    Attributes:
        room: The maximum memory and disk space of the table.
        num_together: See ``Experience.num_together``. Above 1 only if items are sampled
            with equal probability and all steps are in memory.
    """

    def __init__(
        self,
        folder: Path,
        columns: Mapping[str, Column],
        layout: ItemLayout,
        config: ReplayConfig,
        seed: int,
        state: Mapping[str, Any] | None = None,
        *,
        num_slots: int,
        batch_size: int,
        directory: Path | None = None,
        net: NetDoor | None = None,
        mixture: Mixture | None = None,
        num_demos: int = 0,
    ) -> None:
        state = state or {}
        self._num_batches = int(state.get("num_batches", 0))
        self._num_seen = int(state.get("num_seen", 0))
        self._num_turns = int(state.get("num_turns", 0))
        self._counts = {
            name: int(state.get(name, 0)) for name in ("num_rows", "num_episodes")
        }
        self._num_durable_rows = self._counts["num_rows"]
        self._slots_left = num_slots
        self._count_lock = threading.Lock()
        plan = plan_steps(
            folder,
            columns,
            layout,
            config,
            num_slots=num_slots,
            batch_size=batch_size,
            directory=directory,
            num_demos=num_demos,
        )
        self.room = plan.room
        self.num_together = 1
        is_even = config.sampler == "uniform" and mixture is None
        if is_even and plan.room.memory_bytes >= plan.budget.whole_memory_bytes:
            batch_bytes = batch_size * plan.table.item_bytes
            self.num_together = max(1, min(_MOST_TOGETHER, _MOST_BYTES // batch_bytes))
        durable: dict[str, Any] = {}
        if not config.is_queue:
            folder.parent.mkdir(parents=True, exist_ok=True)
            durable = {
                "disk_bytes": plan.room.disk_bytes,
                "disk_directory": folder,
                "durability": "checkpoint",
            }
        where = {} if net is None else dataclasses.asdict(net)
        token = where.pop("token", None)
        store = StoreConfig.of(
            [plan.table] if plan.demos is None else [plan.table, plan.demos],
            memory_bytes=plan.room.memory_bytes,
            seed=seed,
            directory=directory,
            **where,
            **durable,
        )
        super().__init__(Store(store, token=token), columns, layout, config, mixture)
        described = self._table.describe()
        if described["num_inserts"] < self._num_seen:
            self._num_seen = described["num_inserts"]

    @property
    def generation(self) -> int:
        """Number of actor turns so far: calls of ``refresh`` that found new items."""
        return self._num_turns

    @property
    def address(self) -> str | None:
        """``tcp://HOST:PORT`` for actors on other hosts; None if none can connect."""
        return self._store.address

    def writer(
        self,
        name: str,
        num_slots: int,
        first: FirstPriorities | None = None,
        *,
        num_together: int = 1,
    ) -> SlotWriter:
        """Returns a writer for an actor's slots; see ``StepDraws.writer``.

        Raises:
            UsageError: Another writer has the name, or there are too many slots.
        """
        check(
            num_slots <= self._slots_left,
            "num_slots",
            num_slots,
            f"must be at most {self._slots_left}, what the table has memory for; "
            "create it with more",
        )
        self._slots_left -= num_slots
        return super().writer(name, num_slots, first, num_together=num_together)

    def refresh(self) -> int:
        """Returns the number of items inserted since the last call."""
        num_inserts = int(self._table.describe()["num_inserts"])
        num_new = num_inserts - self._num_seen
        self._num_seen = num_inserts
        self._num_turns += num_new > 0
        return num_new

    def available(self) -> int:
        """Returns the number of items that can be sampled now without blocking."""
        found = self._table.describe()
        return self.config.num_available(
            found["num_inserts"], found["num_samples"], found["num_eligible"]
        )

    def lacks(self, num_samples: int) -> str:
        """Returns why no batch can be sampled; see ``Experience.lacks``."""
        available = self.available()
        if available >= num_samples:
            return ""
        num_items = int(self._table.describe()["num_eligible"])
        if not self.config.is_queue and num_items < self.config.min_items:
            return (
                f"items ({num_items}) must be at least store.min_items "
                f"({self.config.min_items}); collect more with tengen train"
            )
        return (
            f"items ({available}) ready for sampling must be at least "
            f"learner.batch_size ({num_samples}); collect more"
        )

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Experience.divide``; each learner samples its items from the table."""
        order = {"number": self._num_batches}
        self._num_batches += 1
        return Divided(order, lambda: self.draw(order, num_samples, first, last))

    def sample(self, num_samples: int) -> Batch:
        """Samples a batch; blocks until the rate limiter allows it.

        Args:
            num_samples: Number B of items, at least 1.

        Returns:
            See ``StepDraws.sample_own``; with demonstrations, they come last.

        Raises:
            RunError: See ``StepDraws.sample_own``.
        """
        return self.divide(num_samples, 0, num_samples).draw()

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Experience.shared``; empty, because followers connect to the table."""
        return {}

    def validation(self, num_samples: int) -> None:
        """Returns None, because no items are held out for validation."""

    def state(self) -> dict[str, Any]:
        """Returns the counters as JSON values; the store saves a replay's items itself.

        Blocks until the replay is durable, so that after a kill the replay is no older
        than the learner's checkpoint. Unacknowledged items count as sampled.

        Raises:
            RunError: The disk is full or fails.
        """
        self.flush()
        return {
            "num_seen": self._num_seen,
            "num_turns": self._num_turns,
            "num_batches": self._num_batches,
            **self._counts,
        }

    def describe(self) -> dict[str, int]:
        """Returns the number of items that can be sampled, and totals of the run.

        ``num_rows`` counts frames, and ``num_episodes`` counts ended episodes.
        """
        return {
            "num_items": int(self._table.describe()["num_eligible"]),
            **self._counts,
        }

    def flush(self) -> None:
        """Blocks until every step of a replay is durable.

        Raises:
            RunError: The disk is full or fails.
        """
        num_rows = self._counts["num_rows"]
        if not self.config.is_queue:
            self._store.checkpoint()
        self._num_durable_rows = num_rows

    @property
    def is_durable(self) -> bool:
        """Whether all steps written through this process survive a kill. Any thread.

        True for a queue, because a restarted process does not need its steps.
        """
        num_rows = self._counts["num_rows"]
        return self.config.is_queue or num_rows == self._num_durable_rows

    def close(self) -> None:
        """Makes a replay durable and frees the memory. A second call does nothing.

        Raises:
            RunError: The disk is full or fails.
        """
        self._store.close()

    def count(self, num_rows: int, num_episodes: int) -> None:
        """Adds to the totals that ``describe`` returns."""
        with self._count_lock:
            self._counts["num_rows"] += num_rows
            self._counts["num_episodes"] += num_episodes
