"""The unroll queue: first in, first out, every item learned from once."""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_literals
from tengen.errors import RunError, UsageError
from tengen.store.batch import Batch
from tengen.store.item_log import ItemLog
from tengen.store.items import Item, ItemSchema
from tengen.store.journal import JournalGap
from tengen.store.leases import Leases

__all__ = ["QueueConfig", "UnrollQueue"]


@dataclass(frozen=True, kw_only=True)
class QueueConfig:
    """How many items wait for the learner, and for how long."""

    kind: Literal["fifo"] = "fifo"
    """Tells tables apart."""

    capacity_items: int = 64
    """An insert waits while so many are queued, at least 1."""

    segment_items: int = 1024
    """Items a journal, at least 1; a journal is removed once all were learned from."""

    timeout_s: float = 300.0
    """The longest wait of an insert or a sample, above 0; then it fails."""

    def __post_init__(self) -> None:
        check_literals(self)
        check(
            self.capacity_items >= 1,
            "capacity_items",
            self.capacity_items,
            "must be at least 1; allow a batch or more",
        )
        check(
            self.segment_items >= 1,
            "segment_items",
            self.segment_items,
            "must be at least 1; raise it",
        )
        check(
            math.isfinite(self.timeout_s) and self.timeout_s > 0,
            "timeout_s",
            self.timeout_s,
            "must be above 0; allow an unroll's time",
        )


class UnrollQueue:
    """A table that hands every item to the learner once, the oldest first.

    Items are durable by the journal and rate limited by the length of the queue. After
    a restart every item that ``state`` does not count as used comes again, in order; a
    sender that repeats an item is heard once. Thread-safe.

    Args:
        directory: ``RUN/experience/<writer>`` of this table, its only writer.
        incarnation: Greater than every earlier one of this table.
        schema: The columns of every item.
        config: Lengths and the timeout.
        count: Returns what is to be counted of an item's columns, by name, the same
            names for every item; ``describe`` has the sums over all items so far.
        state: What ``state`` returned, to continue from; None to start anew.

    Raises:
        UsageError: Another process is this table now, or its items have another schema.
        RunError: A journal is damaged or the disk is full.
    """

    def __init__(
        self,
        directory: Path,
        incarnation: int,
        schema: ItemSchema,
        config: QueueConfig,
        count: Callable[[Mapping[str, NDArray[Any]]], Mapping[str, int]],
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self.config = config
        self._directory = directory
        self._changed = threading.Condition()
        self._items: deque[tuple[int, Item]] = deque()
        self._used: dict[str, int] = dict(state["used"]) if state else {}
        self._num_used = int(state["num_used"]) if state else 0
        self._count = count
        # Of items used, and of those and the ones that wait or are lent.
        self._used_counts: Counter[str] = Counter(state["counts"] if state else {})
        self._counts = self._used_counts.copy()
        self._num_seen = int(state["num_seen"]) if state else 0
        self._num_turns = int(state["num_turns"]) if state else 0
        self._inserted = dict(self._used)
        self._num_inserted = self._num_used
        self._leases: Leases[list[Item]] = Leases(state["num_batches"] if state else 0)
        self._closed = False
        self._log = ItemLog(directory, incarnation, schema, config.segment_items)
        try:
            for item in self._log.read():
                if item.sequence > self._inserted.get(item.writer, -1):
                    self._push(item)
        except BaseException:
            self._log.close()
            raise

    @property
    def gaps(self) -> list[JournalGap]:
        """Where a kill or damage cost items of earlier incarnations."""
        return self._log.gaps

    @property
    def generation(self) -> int:
        """Turns of the actors: calls of ``refresh`` that found something new."""
        return self._num_turns

    def refresh(self) -> int:
        """Returns how many items were inserted since the last call."""
        with self._changed:
            # Items that damage took were seen, and do not come again.
            num_new = max(0, self._num_inserted - self._num_seen)
            self._num_seen += num_new
            self._num_turns += num_new > 0
            return num_new

    def samples_available(self) -> int:
        """Returns how many items may be drawn now without waiting."""
        return len(self._items)

    def next_sequence(self, writer: str) -> int:
        """Returns the sequence number that a writer's next item should have."""
        with self._changed:
            return self._inserted.get(writer, -1) + 1

    def insert(
        self, writer: str, sequence: int, columns: Mapping[str, NDArray[Any]]
    ) -> bool:
        """Adds an item; waits while the queue is full.

        Args:
            writer: Who sends it, at most 255 bytes.
            sequence: Greater than the writer's earlier ones; an item that is not was
                sent before, and is left out.
            columns: As the schema says; they are copied.

        Returns:
            Whether it was new.

        Raises:
            UsageError: The columns are not the schema's.
            RunError: The queue was closed or stayed full for ``timeout_s``, or the disk
                is full.
        """
        self.schema.check(columns)
        copied = {name: np.array(column) for name, column in columns.items()}
        item = Item(writer, sequence, copied)
        with self._changed:
            if sequence <= self._inserted.get(writer, -1):
                return False
            self._wait(lambda: len(self._items) < self.config.capacity_items, "full")
            if sequence <= self._inserted.get(writer, -1):
                return False
            self._log.append(item)
            self._push(item)
            self._changed.notify_all()
        return True

    def sample(self, num_samples: int) -> Batch:
        """Takes the oldest items; waits until there are enough.

        Args:
            num_samples: B, at most ``capacity_items``.

        Returns:
            The batch: keys count items from 0, probabilities are 1.

        Raises:
            UsageError: B is above the capacity.
            RunError: The queue was closed, or too few came within ``timeout_s``.
        """
        if num_samples > self.config.capacity_items:
            raise UsageError(
                f"num_samples ({num_samples}) must be at most capacity_items "
                f"({self.config.capacity_items}); raise capacity_items"
            )
        with self._changed:
            self._wait(lambda: len(self._items) >= num_samples, "short of items")
            size = len(self._items)
            taken = [self._items.popleft() for _ in range(num_samples)]
            lease = self._leases.lend([item for _, item in taken])
            self._changed.notify_all()
        keys = np.array([key for key, _ in taken], np.int64)
        columns = {
            spec.name: np.stack([item.columns[spec.name] for _, item in taken])
            for spec in self.schema.columns
        }
        probabilities = np.ones(num_samples)
        return Batch(lease, keys, probabilities, columns, size, self._ack)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the queue.

        Batches not acknowledged count as not used: their items come again.
        """
        with self._changed:
            return {
                "used": dict(self._used),
                "num_used": self._num_used,
                "counts": dict(self._used_counts),
                "num_batches": self._leases.num_returned,
                "num_seen": self._num_seen,
                "num_turns": self._num_turns,
            }

    def trim(self, state: Mapping[str, Any]) -> int:
        """Removes the journals whose items ``state`` all counts as used.

        Args:
            state: What ``state`` returned, now durable in a checkpoint.

        Returns:
            How many were removed.
        """
        with self._changed:
            return self._log.trim(state["used"])

    def describe(self) -> dict[str, int]:
        """Returns ``num_items``, how many wait, and the sums of what is counted."""
        with self._changed:
            return {"num_items": len(self._items), **self._counts}

    def flush(self) -> None:
        """Blocks until every item inserted is durable.

        Raises:
            RunError: The disk is full or fails.
        """
        self._log.flush()

    def close(self) -> None:
        """Makes everything durable, and every waiting call fail. Idempotent.

        Raises:
            RunError: The disk is full or fails.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._log.close()

    def __enter__(self) -> UnrollQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _push(self, item: Item) -> None:
        self._inserted[item.writer] = item.sequence
        self._items.append((self._num_inserted, item))
        self._num_inserted += 1
        self._counts.update(self._count(item.columns))

    def _wait(self, ready: Callable[[], bool], trouble: str) -> None:
        self._changed.wait_for(lambda: self._closed or ready(), self.config.timeout_s)
        if self._closed:
            raise RunError(f"queue ({self._directory}) is closed; open it again")
        if not ready():
            raise RunError(
                f"queue ({self._directory}) was {trouble} for "
                f"{self.config.timeout_s:g} s; look for a dead learner or actor"
            )

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, the queue has none; leave them out"
            )
        with self._changed:
            items = self._leases.take_back(lease)
            for item in items:
                self._used[item.writer] = item.sequence
                self._used_counts.update(self._count(item.columns))
            self._num_used += len(items)
