"""``Table``, with which callers insert and sample the items of a table."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import UsageError
from tengen.store.arguments import check_batch, whole
from tengen.store.backend import StoreBackend, TableEntry
from tengen.store.batch import Batch
from tengen.store.configs.table_config import TableConfig
from tengen.store.lending import Lending
from tengen.store.sampler import Sampler
from tengen.store.step_writer import StepWriter
from tengen.store.waiting import refused, timeout_of


class Table:
    """A table of a store. Thread-safe; returned by `Store.table`.

    Args:
        backend: The backend of the store.
        entry: The table's indices and config.
        senders: The writers that `insert` uses, by sender name and table name.
    """

    def __init__(
        self,
        backend: StoreBackend,
        entry: TableEntry,
        senders: Lending[tuple[str, str], StepWriter],
    ) -> None:
        self._backend = backend
        self._entry = entry
        self._senders = senders
        self._samplers = Lending(partial(_open_shared, backend, entry))

    @property
    def config(self) -> TableConfig:
        """The config that the table was created from."""
        return self._entry.config

    def insert(
        self,
        writer: str,
        sequence: int,
        columns: Mapping[str, Any],
        priority: NDArray[np.float64] | float = 1.0,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Inserts one item or N items. For overlapping items, use `Store.writer`.

        Args:
            writer: The sender's name. Only one sender at a time may use the name.
            sequence: The sequence number of the item, or of the first of N items. It
                increases per sender; an item with a number used before is ignored.
            columns: Arrays of one step, or ``[N, ...]`` for N items. If the table has T
                steps per sample, ``[T, ...]`` or ``[N * T, ...]``.
            priority: One priority for all items, or an array ``[N]``; 0 to 3.4e38,
                stored as float32.
            timeout_s: Maximum wait in seconds for the rate limiter or for memory.

        Raises:
            UsageError: ``columns`` do not match the table, or the item is rejected.
            StoreTimeout: The rate limiter or memory still makes the insert wait.
        """
        timeout_s = timeout_of(timeout_s)
        with self._senders.lend((writer, self.config.name), timeout_s) as sender:
            num_new = sender.append(columns, timeout_s)
            num_steps = self.config.num_steps
            if num_new % num_steps:
                raise UsageError(
                    f"columns ({num_new} steps) must be a multiple of {num_steps} "
                    "steps, one item each; send complete items"
                )
            sender.insert_each(
                self.config.name,
                num_steps,
                priority,
                count=num_new // num_steps,
                stride=num_steps,
                sequence=sequence,
                timeout_s=timeout_s,
            )

    def sample(self, num_samples: int, timeout_s: float | None = None) -> Batch:
        """Samples a batch on request. Blocks while the rate limiter makes samples wait.

        For a learner's loop, use `sampler`, which samples in advance. Only the calling
        thread may use the batch.

        Args:
            num_samples: B, the batch size, at least 1.
            timeout_s: Maximum wait in seconds; None for no limit.

        Returns:
            A batch with columns ``[B, ...]``, or ``[B, T, ...]`` for T-step samples.
        """
        # Use one sampler per thread, because samplers and batches are not thread-safe.
        timeout_s = timeout_of(timeout_s)
        key = (num_samples, threading.get_ident())
        with self._samplers.lend(key, timeout_s) as sampler:
            return sampler.sample(timeout_s)

    def sampler(self, num_samples: int, *, num_ahead: int = 2) -> Sampler:
        """Returns a sampler of batches, for one thread.

        Args:
            num_samples: B, the batch size, at least 1.
            num_ahead: Number of batches sampled in advance, with the priorities of that
                time; 0 to 1024. Unused if the store is local and has no disk.

        Raises:
            UsageError: A number is out of its range, or a batch would exceed the
                memory.
        """
        return _open_sampler(self._backend, self._entry, num_samples, num_ahead)

    def set_capacity(
        self, max_items: int | None = None, max_bytes: int | None = None
    ) -> None:
        """Changes the capacity, and immediately removes items that exceed it.

        Args:
            max_items: Capacity in items; None for no change.
            max_bytes: Capacity in bytes of step data; None for no change.

        Raises:
            UsageError: The capacity is too small for one item, or both are None.
        """
        given = {"max_items": max_items, "max_bytes": max_bytes}
        capacity = {
            name: None if value is None else whole(name, value)
            for name, value in given.items()
        }
        self._command("set_capacity", **capacity)

    def describe(self) -> dict[str, Any]:
        """Returns the state of the table as JSON values by name.

        ``num_items``, ``num_steps`` and ``num_bytes`` are the current contents, and
        ``num_eligible`` is the number of items that can be sampled. ``num_inserts`` and
        ``num_samples`` are totals since the table was created. With
        ``max_times_sampled``, the unused samples of removed items are included.
        ``max_priority`` is the maximum of the last N to 2 N priorities that were set,
        where N is the number of items, at least 1,000. Until N priorities have been
        set, the maximum includes priorities of inserts. ``insert_waits`` is the reason
        why inserts wait, empty if they do not wait. ``max_items``, ``max_bytes`` (in
        whole steps; None: no bound) and ``limits`` are the current settings.
        ``num_chunk_hits`` and ``num_chunk_misses`` count the sampled chunks that were
        in memory or were read from disk since the store's process began. A chunk counts
        once per sample; without a disk both are 0. ``num_damaged`` is the number of
        items that were removed because they were unreadable. ``trouble``, if present,
        describes a failure of the store.
        """
        return dict(self._command("describe"))

    def close(self) -> None:
        """Gives unacknowledged batches of `sample` back to the store. Idempotent."""
        self._samplers.close()

    def _command(self, name: str, **arguments: Any) -> Any:
        return self._backend.command(name, {"table": self._entry.number, **arguments})


def _open_sampler(
    backend: StoreBackend,
    entry: TableEntry,
    num_samples: int,
    num_ahead: int,
    timeout_s: float | None = None,
) -> Sampler:
    num_samples = whole("num_samples", num_samples)
    num_ahead = whole("num_ahead", num_ahead)
    check_batch(entry.config, num_samples, num_ahead)
    try:
        core = backend.open_sampler(entry, num_samples, num_ahead, timeout_s)
    except _core.CoreError as error:
        raise refused(error) from error
    return Sampler(core, entry.config, backend.check_open)


def _open_shared(
    backend: StoreBackend,
    entry: TableEntry,
    key: tuple[int, int],
    timeout_s: float | None,
) -> Sampler:
    return _open_sampler(backend, entry, key[0], num_ahead=0, timeout_s=timeout_s)
