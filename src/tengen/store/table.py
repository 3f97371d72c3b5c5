"""A table of a store, as writers and learners have it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import check
from tengen.errors import UsageError
from tengen.store.arguments import check_batch, keys_of, vector_of, whole
from tengen.store.backend import StoreBackend, TableEntry
from tengen.store.batch import Batch
from tengen.store.configs.rate_limits import RateLimits
from tengen.store.configs.table_config import TableConfig, check_kind
from tengen.store.lending import Lending
from tengen.store.messages import MAX_KEYS
from tengen.store.sampler import Sampler
from tengen.store.step_writer import StepWriter
from tengen.store.waiting import refused, timeout_of

__all__ = ["Table"]


class Table:
    """A table of a store. Thread-safe; made by `Store.table`.

    Args:
        backend: The store.
        entry: Which table.
        senders: The writers behind `insert`, by sender and table.
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
        """What the table was made from."""
        return self._entry.config

    def insert(
        self,
        writer: str,
        sequence: int,
        columns: Mapping[str, Any],
        priority: NDArray[np.float64] | float = 1.0,
        *,
        version: int = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Adds one item, or N along a leading axis. `writer` is for overlapping items.

        Args:
            writer: Who sends it, one sender at a time.
            sequence: The sender's own increasing number for it, for N items of the
                first; what was inserted before is left out.
            columns: Of one step each, or ``[N, ...]``; of tables with T steps a
                sample ``[T, ...]`` or ``[N * T, ...]``.
            priority: Finite, 0 or more; one for all or ``[N]``.
            version: Of the model that made the item.
            timeout_s: The longest wait for the limiter or for memory.

        Raises:
            UsageError: The columns are not the table's, or are stacked, or the item is
                refused.
            StoreTimeout: The table still waits for samples.
        """
        if self.config.is_stacked:
            raise UsageError(
                f"table ({self.config.name}) has stacked columns, whose items need the "
                f"steps before them; write it by Store.writer"
            )
        timeout_s = timeout_of(timeout_s)
        with self._senders.lend((writer, self.config.name), timeout_s) as sender:
            num_new = sender.append(columns, timeout_s)
            num_steps = self.config.num_steps
            if num_new % num_steps:
                raise UsageError(
                    f"columns ({num_new} steps) must be items of {num_steps} steps "
                    f"each; send whole items"
                )
            sender.insert_each(
                self.config.name,
                num_steps,
                priority,
                count=num_new // num_steps,
                stride=num_steps,
                sequence=sequence,
                version=version,
                timeout_s=timeout_s,
            )

    def sample(self, num_samples: int, timeout_s: float | None = None) -> Batch:
        """Draws a batch now. Blocks while the limiter says so.

        For a learner's loop use `sampler`, which draws ahead. The batch is for the
        thread that drew it.

        Args:
            num_samples: B, at least 1.
            timeout_s: The longest wait; None: for ever.

        Returns:
            Columns ``[B, ...]``, or ``[B, T, ...]`` for T steps a sample.
        """
        # One a thread, as a sampler, and what it lent, is for one.
        timeout_s = timeout_of(timeout_s)
        key = (num_samples, threading.get_ident())
        with self._samplers.lend(key, timeout_s) as sampler:
            return sampler.sample(timeout_s)

    def sampler(
        self, num_samples: int, *, num_ahead: int = 2, copy: bool = True
    ) -> Sampler:
        """Returns a sampler of batches, for one thread.

        Args:
            num_samples: B, at least 1.
            num_ahead: Batches drawn before they are asked for, 0 to 1024, where the
                store is in another process or has a disk. Their priorities are as old.
            copy: False, for samples of a megabyte and more: a batch's columns are lists
                of B read-only arrays that lie in the store's memory. What they show
                stays as it is while one of them lives, also after ``ack``; so long the
                store cannot use their memory again. Every item must lie in one chunk,
                see `TableConfig.steps_per_chunk`.

        Raises:
            UsageError: A batch of so many samples can never be, or the table's samples
                cannot lie in one piece.
        """
        return _open_sampler(self._backend, self._entry, num_samples, num_ahead, copy)

    def set_priorities(
        self, keys: NDArray[np.int64], priorities: NDArray[np.float64]
    ) -> None:
        """Changes priorities, ``[N]`` each; keys that are gone are left out.

        Raises:
            UsageError: Nothing in the table goes by priority, or they are refused.
        """
        self.config.check_priorities()
        given, values = keys_of(keys), vector_of("priorities", priorities)
        check(
            len(values) == len(given),
            "priorities",
            len(values),
            f"must be {len(given)}, one for each key; pass as many",
        )
        # As the core does, but before the first of several commands.
        wrong = values[~(np.isfinite(values) & (values >= 0))]
        if wrong.size:
            raise UsageError(
                f"priority ({wrong[0]}) must be finite and at least 0; mend the loss "
                f"that gave it"
            )
        for some in _slices(len(given)):
            self._command(
                "set_priorities", keys=given[some], priorities=values[some].tolist()
            )

    def erase(self, keys: NDArray[np.int64]) -> int:
        """Removes items, and returns how many there were."""
        given = keys_of(keys)
        return sum(
            int(self._command("erase", keys=given[some]))
            for some in _slices(len(given))
        )

    def set_limits(self, limits: RateLimits) -> None:
        """Changes the limiter; what was inserted and sampled still counts.

        Raises:
            UsageError: They leave no room for one insert and one sample.
        """
        check_kind("limits", limits, RateLimits)
        self._command("set_limits", limits=dataclasses.asdict(limits))

    def set_capacity(
        self, max_items: int | None = None, max_bytes: int | None = None
    ) -> None:
        """Changes the capacity; items that are too many leave at once.

        Args:
            max_items: Items; None: as many as before.
            max_bytes: Of their steps; None: as before.

        Raises:
            UsageError: Not one item would fit.
        """
        given = {"max_items": max_items, "max_bytes": max_bytes}
        capacity = {
            name: None if value is None else whole(name, value)
            for name, value in given.items()
        }
        self._command("set_capacity", **capacity)

    def set_version(self, version: int) -> None:
        """Says which model is the newest: items too far behind it leave."""
        self._command("set_version", version=whole("version", version))

    def describe(self) -> dict[str, Any]:
        """Returns what the table holds, may hold and waits for, as JSON values by name.

        ``num_items``, ``num_steps`` and ``num_bytes`` are there now, ``num_eligible``
        may be drawn, and ``num_inserts`` and ``num_samples`` were made; where uses are
        bounded, samples of items that left unused count as made;
        ``max_priority`` is the greatest that an item was given;
        ``insert_waits`` says for what inserts wait, empty where they do not.
        ``max_items``, ``max_bytes`` (in whole steps; None: no bound), ``limits`` and
        ``newest_version`` hold now. With a disk ``num_chunk_hits`` and
        ``num_chunk_misses`` are the chunks of drawn samples that lay in memory, and
        that had to come from disk, one that several samples lie in once for each, since
        the store's process began; both are 0 without. ``num_damaged`` items are gone as
        they could not be read, and ``trouble``, where there is any, says what went
        wrong with the store. Of shards counts are summed, and ``missing_shards`` lists
        those that do not answer.
        """
        return dict(self._command("describe"))

    def close(self) -> None:
        """Gives back what `sample` drew and nobody acknowledged. Idempotent."""
        self._samplers.close()

    def _command(self, name: str, **arguments: Any) -> Any:
        return self._backend.command(name, {"table": self._entry.number, **arguments})


def _slices(num_keys: int) -> Iterator[slice]:
    """Returns what each of several commands has of so many keys; one at least."""
    for begin in range(0, max(1, num_keys), MAX_KEYS):
        yield slice(begin, begin + MAX_KEYS)


def _open_sampler(
    backend: StoreBackend,
    entry: TableEntry,
    num_samples: int,
    num_ahead: int,
    copy: bool = True,
    timeout_s: float | None = None,
) -> Sampler:
    num_samples = whole("num_samples", num_samples)
    num_ahead = whole("num_ahead", num_ahead)
    check_batch(entry.config, num_samples, num_ahead, copy)
    try:
        core = backend.open_sampler(entry, num_samples, num_ahead, copy, timeout_s)
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
