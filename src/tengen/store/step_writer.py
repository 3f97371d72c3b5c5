"""``StepWriter``, which appends steps and inserts items of consecutive steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import check, check_whole
from tengen.errors import UsageError
from tengen.store.arguments import vector_of, whole
from tengen.store.backend import StoreBackend, TableEntry, find_table
from tengen.store.waiting import refused, slice_of, wait_for

T = TypeVar("T")


def open_writer(
    backend: StoreBackend,
    entries: Mapping[str, TableEntry],
    name: str,
    table: str,
    max_item_steps: int | None = None,
    timeout_s: float | None = None,
) -> StepWriter:
    """Returns a new writer; see `Store.writer`.

    Args:
        backend: The backend of the store.
        entries: The store's tables, by name.
        name: The writer's name.
        table: Name of a table with the columns of the steps.
        max_item_steps: The maximum number of steps appended before the last insert that
            an item may contain, in addition to all later steps.
        timeout_s: Maximum wait for the store in seconds; None: the default timeout.
    """
    entry = find_table(entries, table)
    check(isinstance(name, str) and bool(name), "name", name, "must be a str; set it")
    shared = {other: one for other, one in entries.items() if one.pool == entry.pool}
    if max_item_steps is None:
        max_item_steps = max(one.config.num_steps for one in shared.values())
    check_whole("max_item_steps", max_item_steps, 0, 2**32 - 1)
    try:
        core = backend.open_writer(name, entry, max_item_steps, timeout_s)
    except _core.CoreError as error:
        raise refused(error) from error
    return StepWriter(core, shared, backend.check_open)


class StepWriter:
    """Appends steps, and inserts items into all tables with the same columns.

    Inserts take effect in order and asynchronously; ``flush`` waits for them. If the
    process of a writer dies, only its inserted items remain, and the next writer with
    the same name resumes at ``next_sequence``. For one thread.

    Args:
        core: The core's writer.
        tables: The tables that accept this writer's items, by name.
        check_open: Raises UsageError if the store has been closed in this process.
    """

    def __init__(
        self,
        core: _core.ReplayWriter,
        tables: Mapping[str, TableEntry],
        check_open: Callable[[], None],
    ) -> None:
        self._core: _core.ReplayWriter | None = core
        self._tables = tables
        self._check_open = check_open

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next item. All lower numbers were inserted."""
        return self._open().next_sequence

    @property
    def num_steps(self) -> int:
        """The number of steps that this writer has appended."""
        return self._open().num_steps

    def append(
        self,
        columns: Mapping[str, Any],
        timeout_s: float | None = None,
    ) -> int:
        """Appends one step, or N steps along axis 0. Blocks until memory is free.

        Args:
            columns: Arrays of the declared dtypes and shapes, C-contiguous or not, of
                NumPy or of any library with DLPack on the CPU; numbers for columns
                without axes; nested dicts for names with ``/``.
            timeout_s: Maximum wait in seconds; None for no limit.

        Returns:
            N, the number of appended steps.

        Raises:
            UsageError: A column is missing or unknown, or has the wrong dtype or shape.
            StoreTimeout: No memory became free in time. Some of the steps may have been
                appended; see ``num_steps``.
        """
        core = self._open()
        slice_s = slice_of(timeout_s)
        try:
            count = core.append(columns, slice_s)
        except _core.CoreError as error:
            raise refused(error) from error
        except TypeError as error:
            raise UsageError(
                f"columns ({type(columns).__name__}) must be a dict of arrays; pass one"
            ) from error
        if count is not None:
            return count
        return self._wait_for(core.append_rest, timeout_s, "append")

    def insert(
        self,
        table: str,
        num_steps: int,
        priority: float = 1.0,
        *,
        sequence: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Inserts an item of the last ``num_steps`` steps. The rate limiter may block.

        Args:
            table: Name of a table with this writer's columns.
            num_steps: Steps of the item, at least the ``num_steps`` of the table.
            priority: The item's priority, 0 to 3.4e38, stored as float32.
            sequence: The item's sequence number; None for the next number. If an
                item with this number has been inserted, the call does nothing.
            timeout_s: Maximum wait in seconds; None for no limit.

        Raises:
            UsageError: The steps are no longer available, or the item is rejected.
            StoreTimeout: The rate limiter still makes the insert wait.
        """
        core = self._open()
        number = self._number_of(table, num_steps)
        slice_s = slice_of(timeout_s)
        try:
            if core.insert(number, num_steps, priority, sequence, slice_s):
                return
        except _core.CoreError as error:
            raise refused(error) from error
        except TypeError as error:
            raise _no_numbers(num_steps, priority, sequence) from error
        self._wait_for(
            lambda s: core.insert(number, num_steps, priority, sequence, s) or None,
            timeout_s,
            f"insert into {table}",
        )

    def insert_each(
        self,
        table: str,
        num_steps: int = 1,
        priorities: NDArray[np.float64] | float = 1.0,
        *,
        count: int | None = None,
        stride: int = 1,
        sequence: int | None = None,
        timeout_s: float | None = None,
    ) -> int:
        """Inserts one item for each of the most recent steps, in one command.

        An item consists of its step and the ``num_steps - 1`` preceding steps, which
        earlier calls may have appended. A step with fewer preceding steps gets no item.
        Use ``count`` to omit items that would extend into another episode.

        Args:
            table: Name of a table with this writer's columns.
            num_steps: T, the steps per item, at least the ``num_steps`` of the table.
            priorities: ``[N] float64``, or one priority for all items; 0 to 3.4e38.
            count: N, the number of items; the last item ends with the last step. None
                for one item per step of the last ``append`` that has enough preceding
                steps; the priorities of the other steps are ignored.
            stride: Number of steps between the ends of consecutive items, at least 1.
                With a stride of T, items share no steps.
            sequence: Sequence number of the first item, incremented for each further
                item. None for the next number.
            timeout_s: Maximum wait in seconds; None for no limit.

        Returns:
            The number of inserted items.

        Raises:
            UsageError: The steps are no longer available, or an item is rejected.
            StoreTimeout: Inserts must still wait. Some items may have been inserted.
        """
        core = self._open()
        number = self._number_of(table, num_steps)
        if not isinstance(priorities, float):
            priorities = vector_of("priorities", priorities)
        try:
            return self._wait_for(
                lambda s: core.insert_each(
                    number, num_steps, priorities, count, stride, sequence, s
                ),
                timeout_s,
                f"insert into {table}",
            )
        except TypeError as error:
            raise _no_numbers(num_steps, count, stride, sequence) from error

    def flush(self, timeout_s: float | None = None) -> None:
        """Blocks until every insert of this writer has taken effect.

        Raises:
            UsageError: An insert was rejected.
            StoreTimeout: A rate limiter still makes an insert wait.
        """
        core = self._open()
        self._wait_for(lambda s: core.flush(s) or None, timeout_s, "flush")

    def close(self, timeout_s: float | None = None) -> None:
        """Calls `flush` and frees the name of the writer. Idempotent."""
        if self._core is not None:
            try:
                self.flush(timeout_s)
            finally:
                self._core = None

    def __enter__(self) -> StepWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._core = None

    def _open(self) -> _core.ReplayWriter:
        if self._core is None:
            raise UsageError("writer (closed) cannot be used; open another")
        return self._core

    def _wait_for(
        self, attempt: Callable[[float], T | None], timeout_s: float | None, what: str
    ) -> T:
        core = self._open()
        return wait_for(attempt, timeout_s, what, core.waits, self._check_open)

    def _number_of(self, table: str, num_steps: int) -> int:
        entry = self._tables.get(table) if isinstance(table, str) else None
        if entry is None:
            raise UsageError(
                f"table ({table}) must have this writer's columns; use "
                f"{', '.join(self._tables)}"
            )
        if whole("num_steps", num_steps) < entry.config.num_steps:
            raise UsageError(
                f"num_steps ({num_steps}) must be at least the table's "
                f"{entry.config.num_steps}; insert longer items"
            )
        return entry.number


def _no_numbers(*given: object) -> UsageError:
    values = ", ".join(repr(one) for one in given)
    return UsageError(f"item ({values}) must have numbers of at least 0; correct them")
