"""The unroll queue: first in, first out, every item learned from once."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.run.publish import storage_error
from tengen.store.items import Item, ItemSchema
from tengen.store.leases import Leases
from tengen.store.segment import recover_journal
from tengen.store.table import Batch
from tengen.store.writer import ExperienceWriter, OpenSegment

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


@dataclass
class _Segment:
    """A journal of the queue, and what it holds: the last sequence by writer."""

    path: Path
    last: dict[str, int] = field(default_factory=dict)


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
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self.config = config
        self._changed = threading.Condition()
        self._items: deque[tuple[int, Item]] = deque()
        self._inserted: dict[str, int] = {}
        self._acked: dict[str, int] = dict(state["used"]) if state else {}
        self._num_inserted = int(state["num_used"]) if state else 0
        self._num_acked = self._num_inserted
        self._leases: Leases[list[Item]] = Leases(state["num_batches"] if state else 0)
        self._closed = False
        self._segments: list[_Segment] = []
        self._writer = ExperienceWriter(directory, incarnation)
        self._journal: OpenSegment | None = None
        self._num_journals = 0
        try:
            self._recover()
        except BaseException:
            self._writer.release()
            raise

    @property
    def num_items(self) -> int:
        """Items that wait."""
        return len(self._items)

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
        frame = self.schema.encode(item)
        with self._changed:
            if sequence <= self._inserted.get(writer, -1):
                return False
            self._wait(lambda: len(self._items) < self.config.capacity_items, "full")
            if sequence <= self._inserted.get(writer, -1):
                return False
            self._open_journal().append(frame)
            self._segments[-1].last[writer] = sequence
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
            taken = [self._items.popleft() for _ in range(num_samples)]
            lease = self._leases.lend([item for _, item in taken])
            self._changed.notify_all()
        keys = np.array([key for key, _ in taken], np.int64)
        columns = {
            spec.name: np.stack([item.columns[spec.name] for _, item in taken])
            for spec in self.schema.columns
        }
        return Batch(lease, keys, np.ones(num_samples), columns, self._ack)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the queue.

        Batches not acknowledged count as not used: their items come again.
        """
        with self._changed:
            return {
                "used": dict(self._acked),
                "num_used": self._num_acked,
                "num_batches": self._leases.num_returned,
            }

    def trim(self, state: Mapping[str, Any]) -> int:
        """Removes the journals whose items ``state`` all counts as used.

        Args:
            state: What ``state`` returned, now durable in a checkpoint.

        Returns:
            How many were removed.
        """
        used: Mapping[str, int] = state["used"]
        num_removed = 0
        with self._changed:
            current = self._segments[-1:] if self._journal is not None else []
            for segment in list(self._segments):
                left = [w for w, last in segment.last.items() if used.get(w, -1) < last]
                if left or segment in current:
                    continue
                try:
                    segment.path.unlink(missing_ok=True)
                except OSError as error:
                    raise storage_error(segment.path, error) from error
                self._segments.remove(segment)
                num_removed += 1
        return num_removed

    def flush(self) -> None:
        """Blocks until every item inserted is durable.

        Raises:
            RunError: The disk is full or fails.
        """
        with self._changed:
            journal = self._journal
        if journal is not None:
            journal.flush()

    def close(self) -> None:
        """Makes everything durable, and every waiting call fail. Idempotent.

        Raises:
            RunError: The disk is full or fails.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            if self._journal is not None:
                self._journal.close()
        finally:
            self._writer.release()

    def __enter__(self) -> UnrollQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _recover(self) -> None:
        """Queues again what earlier incarnations kept and nobody learned from."""
        self._inserted = dict(self._acked)
        paths = self._writer.directory.glob("*/*.journal")
        for path in sorted(paths, key=lambda p: (int(p.parent.name), p.stem)):
            meta, frames = recover_journal(path)
            if meta.get("columns") != self.schema.to_list():
                raise UsageError(
                    f"journal ({path}) must hold the columns of this table; "
                    f"choose another --out"
                )
            segment = _Segment(path)
            for frame in frames:
                item = self.schema.decode(frame)
                segment.last[item.writer] = item.sequence
                if item.sequence > self._inserted.get(item.writer, -1):
                    self._push(item)
            self._segments.append(segment)

    def _push(self, item: Item) -> None:
        self._inserted[item.writer] = item.sequence
        self._items.append((self._num_inserted, item))
        self._num_inserted += 1

    def _open_journal(self) -> OpenSegment:
        """The journal to append to: a new one where the last has its fill."""
        journal = self._journal
        if journal is not None and journal.num_appended >= self.config.segment_items:
            journal.close()
            self._journal = None
        if self._journal is None:
            self._journal = self._writer.open_items(self._num_journals, self.schema)
            self._num_journals += 1
            self._segments.append(_Segment(self._journal.path))
        return self._journal

    def _wait(self, ready: Callable[[], bool], trouble: str) -> None:
        self._changed.wait_for(lambda: self._closed or ready(), self.config.timeout_s)
        if self._closed:
            raise RunError(f"queue ({self._writer.directory}) is closed; open it again")
        if not ready():
            raise RunError(
                f"queue ({self._writer.directory}) was {trouble} for "
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
                self._acked[item.writer] = item.sequence
            self._num_acked += len(items)
