"""The unroll queue: first in, first out, every item learned from once."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections import Counter
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
from tengen.store.leases import Leases
from tengen.store.rate_limits import RateLimits
from tengen.store.sampler import Sampler
from tengen.store.saved_config import read_config
from tengen.store.step_writer import StepWriter
from tengen.store.store import Store
from tengen.store.table_config import Column, Selector, TableConfig
from tengen.store.waiting import StoreTimeout

__all__ = ["QueueConfig", "UnrollQueue"]

_NAME = "unrolls"
# Beside the item's own columns: its number, from 0.
_NUMBER = "number"
# Of the disk, at least a page.
_ROW_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class QueueConfig:
    """How many items wait for the learner, and for how long."""

    kind: Literal["fifo"] = "fifo"
    """Tells tables apart."""

    capacity_items: int = 64
    """An insert waits while so many are queued, 1 to 2^20. So does one that comes when
    about twice as many, and 64, were used and are not trimmed."""

    timeout_s: float = 300.0
    """The longest wait of an insert or a sample, above 0; then it fails."""

    def __post_init__(self) -> None:
        check_literals(self)
        check(
            1 <= self.capacity_items <= 1 << 20,
            "capacity_items",
            self.capacity_items,
            "must be 1 to 2^20; allow a batch or more",
        )
        check(
            math.isfinite(self.timeout_s) and self.timeout_s > 0,
            "timeout_s",
            self.timeout_s,
            "must be above 0; allow an unroll's time",
        )


class UnrollQueue:
    """A table that hands every item to the learner once, the oldest first.

    A `Store` of one table, rate limited by the length of the queue, with a disk. Its
    checkpoints and the learner's go together: items count as used there once the
    learner's checkpoint that has learned from them is durable (`trim`), so that after a
    kill at any instant exactly those come again that the learner's checkpoint lacks.
    Thread-safe.

    Args:
        directory: ``RUN/experience/<writer>`` of this table, for this process alone.
        columns: Of every item, by name.
        config: Length and timeout.
        count: Returns what is to be counted of an item's columns, by name, the same
            names for every item; ``describe`` has the sums over all items so far.
        state: What ``state`` returned, to continue from; None to start anew.

    Raises:
        UsageError: Another process is this table now, or its items have other columns.
        RunError: The disk is full or fails.
    """

    def __init__(
        self,
        directory: Path,
        columns: Mapping[str, Column],
        config: QueueConfig,
        count: Callable[[Mapping[str, NDArray[Any]]], Mapping[str, int]],
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        self._directory = directory
        self._count = count
        state = state or {}
        # Items used, by the caller's word.
        self._num_used = int(state.get("num_used", 0))
        self._num_inserted = int(state.get("num_inserted", 0))
        self._num_durable = self._num_inserted
        self._counts: Counter[str] = Counter(state.get("counts", {}))
        self._num_seen = int(state.get("num_seen", 0))
        self._num_turns = int(state.get("num_turns", 0))
        self._leases: Leases[Batch] = Leases(int(state.get("num_batches", 0)))
        # Used, and not yet in a checkpoint of the learner.
        self._spent: list[tuple[int, Batch]] = []
        self._num_trimmed = self._num_used
        self._lock = threading.Lock()
        self._inserting = threading.Lock()
        self._sampling = threading.Lock()
        self._writers: dict[str, StepWriter] = {}
        self._samplers: dict[int, Sampler] = {}
        self._is_closed = False
        self._store = _open_store(directory, columns, config)
        try:
            self._table = self._store.table(_NAME)
            self._take_over()
        except BaseException:
            self._store.close()
            raise

    @property
    def generation(self) -> int:
        """Turns of the actors: calls of ``refresh`` that found something new."""
        return self._num_turns

    def refresh(self) -> int:
        """Returns how many items were inserted since the last call."""
        with self._lock:
            # Items that a lost host took were seen, and do not come again.
            num_new = max(0, self._num_inserted - self._num_seen)
            self._num_seen += num_new
            self._num_turns += num_new > 0
            return num_new

    def samples_available(self) -> int:
        """Returns how many items may be drawn now without waiting."""
        return int(self._table.describe()["num_eligible"])

    def next_sequence(self, writer: str) -> int:
        """Returns the sequence number that a writer's next item should have."""
        with self._inserting:
            return self._writer(writer).next_sequence

    def insert(
        self, writer: str, sequence: int, columns: Mapping[str, NDArray[Any]]
    ) -> bool:
        """Adds an item; waits while the queue is full.

        Args:
            writer: Who sends it.
            sequence: Greater than the writer's earlier ones; an item that is not was
                sent before, and is left out.
            columns: As declared; they are copied.

        Returns:
            Whether it was new.

        Raises:
            UsageError: The columns are not those declared.
            RunError: The queue was closed or stayed full for ``timeout_s``, or the disk
                is full.
        """
        with self._inserting:
            sender = self._writer(writer)
            if sequence < sender.next_sequence:
                return False
            number = np.int64(self._num_inserted)
            try:
                sender.append({**columns, _NUMBER: number}, self.config.timeout_s)
                sender.insert(
                    _NAME, 1, sequence=sequence, timeout_s=self.config.timeout_s
                )
            except (StoreTimeout, UsageError) as error:
                raise self._trouble("full", error) from error
            with self._lock:
                self._num_inserted += 1
                self._counts.update(self._count(columns))
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
        with self._sampling:
            size = self.samples_available()
            try:
                drawn = self._sampler(num_samples).sample(self.config.timeout_s)
            except (StoreTimeout, UsageError) as error:
                raise self._trouble("short of items", error) from error
            with self._lock:
                # Its arrays are the caller's alone.
                lease = self._leases.lend(dataclasses.replace(drawn, columns={}))
        columns = dict(drawn.columns)
        keys = columns.pop(_NUMBER)
        return Batch(lease, keys, drawn.probabilities, columns, size, self._ack)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the queue, with items that are durable.

        Batches not acknowledged count as not used: their items come again.

        Raises:
            RunError: The disk is full or fails.
        """
        with self._lock:
            state = {
                "num_used": self._num_used,
                "num_inserted": self._num_inserted,
                "counts": dict(self._counts),
                "num_batches": self._leases.num_returned,
                "num_seen": self._num_seen,
                "num_turns": self._num_turns,
            }
            is_durable = self._num_durable == self._num_inserted
        if not is_durable:
            # Else a lost host would take items that were learned from, and their
            # senders send them again.
            self.flush()
        return state

    def trim(self, state: Mapping[str, Any]) -> int:
        """Removes the items that ``state`` counts as used, and makes the rest durable.

        Args:
            state: What ``state`` returned, now durable in a checkpoint.

        Returns:
            How many were removed.

        Raises:
            RunError: The disk is full or fails.
        """
        with self._lock:
            gone = [one for one in self._spent if one[0] <= state["num_used"]]
            self._spent = self._spent[len(gone) :]
            self._num_trimmed = max([self._num_trimmed, *(one[0] for one in gone)])
        for _, batch in gone:
            batch.ack()
        self.flush()
        return sum(len(batch.keys) for _, batch in gone)

    def describe(self) -> dict[str, int]:
        """Returns ``num_items``, how many wait, and the sums of what is counted."""
        num_items = self.samples_available()
        with self._lock:
            return {"num_items": num_items, **self._counts}

    def flush(self) -> None:
        """Blocks until every item inserted is durable.

        Raises:
            RunError: The disk is full or fails.
        """
        num_inserted = self._num_inserted
        self._store.checkpoint()
        self._num_durable = num_inserted

    def close(self) -> None:
        """Makes everything durable, and every waiting call fail. Idempotent.

        Raises:
            RunError: The disk is full or fails.
        """
        self._is_closed = True
        self._store.close()

    def __enter__(self) -> UnrollQueue:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _take_over(self) -> None:
        """Goes on with what is on the disk, as the state says."""
        size = self.samples_available()
        if size == 0:
            return
        with self._table.sampler(size, num_ahead=0) as sampler:
            left = sampler.sample(self.config.timeout_s)
        numbers = left.columns[_NUMBER]
        for i in np.flatnonzero(numbers >= self._num_inserted):
            names = [name for name in left.columns if name != _NUMBER]
            item = {name: left.columns[name][i] for name in names}
            self._counts.update(self._count(item))
        self._num_inserted = max(self._num_inserted, int(numbers[-1]) + 1)
        # A kill between the learner's checkpoint and the store's.
        num_used = int((numbers < self._num_used).sum())
        if num_used > 0:
            with self._table.sampler(num_used, num_ahead=0) as sampler:
                sampler.sample(self.config.timeout_s).ack()

    def _writer(self, name: str) -> StepWriter:
        if name not in self._writers:
            try:
                self._writers[name] = self._store.writer(name, _NAME)
            except UsageError as error:
                raise self._trouble("not open", error) from error
        return self._writers[name]

    def _sampler(self, num_samples: int) -> Sampler:
        if num_samples not in self._samplers:
            self._samplers[num_samples] = self._table.sampler(num_samples, num_ahead=0)
        return self._samplers[num_samples]

    def _trouble(self, what: str, error: RunError | UsageError) -> Exception:
        if self._is_closed:
            return RunError(f"queue ({self._directory}) is closed; open it again")
        if isinstance(error, UsageError):
            return error
        with self._lock:
            num_spent = self._num_used - self._num_trimmed
        has_room = self.samples_available() < self.config.capacity_items
        if what == "full" and has_room and num_spent > 0:
            return RunError(
                f"queue ({self._directory}) has {num_spent} items that were used and "
                f"not trimmed, for {self.config.timeout_s:g} s; trim more often, or "
                f"raise capacity_items ({self.config.capacity_items})"
            )
        return RunError(
            f"queue ({self._directory}) was {what} for "
            f"{self.config.timeout_s:g} s; look for a dead learner or actor"
        )

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, the queue has none; leave them out"
            )
        with self._lock:
            batch = self._leases.take_back(lease)
            self._num_used += len(batch.keys)
            self._spent.append((self._num_used, batch))


def _open_store(
    directory: Path, columns: Mapping[str, Column], config: QueueConfig
) -> Store:
    # A queue that is full, as much that is used and not trimmed, and one more of that.
    num_rows = 3 * config.capacity_items + 64
    table = TableConfig(
        name=_NAME,
        columns={**columns, _NUMBER: Column(dtype="int64")},
        sampler=Selector(kind="fifo"),
        max_times_sampled=1,
        limits=RateLimits.queue(config.capacity_items),
        max_loans=num_rows,  # batches of one that are not trimmed
        steps_per_chunk=1,  # so that each makes room by itself
    )
    directory.parent.mkdir(parents=True, exist_ok=True)
    row_bytes = -(-table.step_bytes // _ROW_BYTES) * _ROW_BYTES
    memory_bytes = num_rows * row_bytes
    # One that was longer has items for which it needs what it had.
    memory_bytes = max(memory_bytes, read_config(directory).get("memory_bytes", 0))
    return Store(
        [table],
        memory_bytes=memory_bytes,
        # Rows that the last checkpoint names are not used again before the next one.
        disk_bytes=4 * memory_bytes,
        disk_directory=directory,
        durability="checkpoint",
    )
