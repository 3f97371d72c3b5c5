"""A writer of steps: appends them once, and names runs of them as items of tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import UsageError
from tengen.store.backend import TableEntry
from tengen.store.waiting import refused, slice_of, wait_for

__all__ = ["StepWriter"]


class StepWriter:
    """Appends steps of one schema, and inserts items into the tables that share it.

    Inserts take effect in order, a moment after the call; ``flush`` waits for them. A
    writer that dies leaves what it inserted and nothing else: the next one of its name
    goes on with ``next_sequence``. For one thread.

    Args:
        core: The core's writer.
        tables: The tables that items may go to, by name.
    """

    def __init__(
        self, core: _core.ReplayWriter, tables: Mapping[str, TableEntry]
    ) -> None:
        self._core: _core.ReplayWriter | None = core
        self._tables = tables

    @property
    def next_sequence(self) -> int:
        """The number of the next item; items of lower ones were inserted."""
        return self._open().next_sequence

    @property
    def num_steps(self) -> int:
        """Steps appended by this writer."""
        return self._open().num_steps

    def append(
        self, columns: Mapping[str, Any], timeout_s: float | None = None
    ) -> None:
        """Copies one step, or several along a leading axis; blocks for memory.

        Args:
            columns: Arrays of the declared dtypes and shapes, C-contiguous or not, of
                numpy or of anything that speaks DLPack on the CPU; numbers for
                columns of no axes; nested dicts for names with ``/``.
            timeout_s: The longest wait; None: for ever.

        Raises:
            UsageError: A column is missing, unknown, or of another dtype or shape.
            StoreTimeout: No memory became free; the steps before are appended.
        """
        core = self._open()
        try:
            if core.append(columns, slice_of(timeout_s)):
                return
        except _core.CoreError as error:
            raise refused(error) from error
        wait_for(lambda s: core.append_rest(s) or None, timeout_s, "append", core.waits)

    def insert(
        self,
        table: str,
        num_steps: int,
        priority: float = 1.0,
        *,
        sequence: int | None = None,
        version: int = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Makes the last steps an item. Blocks while the table's limiter says so.

        Args:
            table: One that shares this writer's columns.
            num_steps: How many of the last steps, at least the table's ``num_steps``.
            priority: Finite, 0 or more.
            sequence: The writer's own number of it; None: the next. One that was
                inserted before is left out.
            version: Of the model that made the steps.
            timeout_s: The longest wait; None: for ever.

        Raises:
            UsageError: The steps are gone or the item is refused.
            StoreTimeout: The table still waits for samples.
        """
        core = self._open()
        number = self._number_of(table)
        try:
            if core.insert_last(
                number, num_steps, priority, sequence, version, slice_of(timeout_s)
            ):
                return
        except _core.CoreError as error:
            raise refused(error) from error
        wait_for(
            lambda s: (
                core.insert_last(number, num_steps, priority, sequence, version, s)
                or None
            ),
            timeout_s,
            f"insert into {table}",
            core.waits,
        )

    def insert_each(
        self,
        table: str,
        count: int,
        num_steps: int = 1,
        priorities: NDArray[np.float64] | float = 1.0,
        *,
        stride: int | None = None,
        sequence: int | None = None,
        version: int = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Makes the last steps ``count`` items by one command.

        Args:
            table: One that shares this writer's columns.
            count: N, at least 1.
            num_steps: T of each.
            priorities: ``[N] float64``, or one for all; finite, 0 or more.
            stride: Steps from one item's first to the next's; None: T.
            sequence: Of the first; the others follow. None: the next.
            version: Of the model that made the steps.
            timeout_s: The longest wait; None: for ever.

        Raises:
            UsageError: The steps are gone or an item is refused.
            StoreTimeout: The table still waits for samples; those before are in.
        """
        apart = num_steps if stride is None else stride
        first = self.num_steps - num_steps - (count - 1) * apart
        given = np.atleast_1d(np.asarray(priorities, np.float64))
        if count < 1 or first < 0 or given.shape not in ((1,), (count,)):
            raise UsageError(
                f"count ({count}, of {num_steps} steps, {given.size} priorities) must "
                f"be at least 1, of appended steps, with a priority for each or for "
                f"all; append more first, or pass as many"
            )
        core = self._open()
        number = self._number_of(table)
        begin = core.next_sequence if sequence is None else sequence
        wait_for(
            lambda s: (
                core.insert(
                    number, begin, first, count, apart, num_steps, given, version, s
                )
                or None
            ),
            timeout_s,
            f"insert into {table}",
            core.waits,
        )

    def flush(self, timeout_s: float | None = None) -> None:
        """Blocks until every insert has taken effect.

        Raises:
            UsageError: One of them was refused.
            StoreTimeout: A table still waits for samples.
        """
        core = self._open()
        wait_for(lambda s: core.flush(s) or None, timeout_s, "flush", core.waits)

    def close(self, timeout_s: float | None = None) -> None:
        """Flushes, and gives the writer's name free. A second call does nothing."""
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
            raise UsageError("writer (closed) must be open; open another")
        return self._core

    def _number_of(self, table: str) -> int:
        entry = self._tables.get(table)
        if entry is None:
            raise UsageError(
                f"table ({table}) must have this writer's columns; it may write to "
                f"{', '.join(self._tables)}"
            )
        return entry.number
