"""A writer of steps: appends each step once, and makes items of consecutive steps."""

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

__all__ = ["StepWriter", "open_writer"]

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
        backend: The store.
        entries: Its tables, by name.
        name: The writer's name.
        table: The table whose columns the steps have.
        max_item_steps: How many steps before the writer's last insert an item may still
            have, besides all steps appended since.
        timeout_s: How long the store may take; None: as long as the connection allows.
    """
    entry = find_table(entries, table)
    check(isinstance(name, str) and bool(name), "name", name, "must be text; name it")
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
    """Appends steps of one schema, and inserts items into the tables that share it.

    Inserts take effect in order, a moment after the call; ``flush`` waits for them.
    When a writer dies, what it inserted stays and nothing else; the next writer of its
    name continues at ``next_sequence``. For one thread.

    Args:
        core: The core's writer.
        tables: The tables that items may go to, by name.
        check_open: Raises UsageError if the store was closed in this process.
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
        """The number of the next item; items with lower numbers were inserted."""
        return self._open().next_sequence

    @property
    def num_steps(self) -> int:
        """Steps appended by this writer."""
        return self._open().num_steps

    def append(
        self,
        columns: Mapping[str, Any],
        timeout_s: float | None = None,
    ) -> int:
        """Copies one step, or N along a leading axis; blocks for memory.

        Args:
            columns: Arrays of the declared dtypes and shapes, C-contiguous or not, of
                numpy or of any library with DLPack on the CPU; numbers for columns
                without axes; nested dicts for names with ``/``.
            timeout_s: The longest wait; None: for ever.

        Returns:
            How many steps were appended: N.

        Raises:
            UsageError: A column is missing, unknown, or of another dtype or shape.
            StoreTimeout: No memory became free; some of the steps may be appended,
                which ``num_steps`` counts.
        """
        core = self._open()
        slice_s = slice_of(timeout_s)
        try:
            count = core.append(columns, slice_s)
        except _core.CoreError as error:
            raise refused(error) from error
        except TypeError as error:
            raise UsageError(
                f"columns ({type(columns).__name__}) must be a dict; name its arrays"
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
        """Makes an item of the last steps. Blocks while the limiter holds inserts.

        Args:
            table: A table with this writer's columns.
            num_steps: How many of the last steps, at least the table's ``num_steps``.
            priority: 0 to 3.4e38, kept as a float32.
            sequence: The writer's own number of the item; None: the next number. An
                item that was inserted before is ignored.
            timeout_s: The longest wait; None: for ever.

        Raises:
            UsageError: The steps are no longer there, or the item is refused.
            StoreTimeout: The table still waits for samples.
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
        """Makes one item for each of the steps appended last, in one command.

        An item has its step and the ``num_steps - 1`` steps before it, whichever call
        appended them; a step with fewer steps before it gets no item. Use ``count`` to
        leave out items that would reach into another episode.

        Args:
            table: A table with this writer's columns.
            num_steps: T, the steps of each item, at least the table's ``num_steps``.
            priorities: ``[N] float64``, or one for all; 0 to 3.4e38.
            count: N, the number of items, the last of which ends with the last step.
                None: one for each step of the last ``append`` that has enough steps
                before it; the priorities of the other steps are ignored.
            stride: Steps from one item's end to the next item's end, at least 1; with T
                items share no steps.
            sequence: The number of the first item; the others follow. None: the next
                number.
            timeout_s: The longest wait; None: for ever.

        Returns:
            How many items were inserted.

        Raises:
            UsageError: The steps are no longer there, or an item is refused.
            StoreTimeout: The table still waits for samples; earlier items are inserted.
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
        """Blocks until every insert has taken effect.

        Raises:
            UsageError: An insert was refused.
            StoreTimeout: A table still waits for samples.
        """
        core = self._open()
        self._wait_for(lambda s: core.flush(s) or None, timeout_s, "flush")

    def close(self, timeout_s: float | None = None) -> None:
        """Flushes, and frees the writer's name. A second call does nothing."""
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

    def _wait_for(
        self, attempt: Callable[[float], T | None], timeout_s: float | None, what: str
    ) -> T:
        core = self._open()
        return wait_for(attempt, timeout_s, what, core.waits, self._check_open)

    def _number_of(self, table: str, num_steps: int) -> int:
        entry = self._tables.get(table) if isinstance(table, str) else None
        if entry is None:
            raise UsageError(
                f"table ({table}) must have this writer's columns; it may write to "
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
    return UsageError(f"item ({values}) must have numbers, 0 or more; correct them")
