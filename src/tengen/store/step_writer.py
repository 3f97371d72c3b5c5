"""A writer of steps: appends them once, and names runs of them as items of tables."""

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
        name: The writer's.
        table: Whose columns the steps have.
        max_item_steps: Steps before the last insert that items may still have.
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

    Inserts take effect in order, a moment after the call; ``flush`` waits for them. A
    writer that dies leaves what it inserted and nothing else: the next one of its name
    goes on with ``next_sequence``. For one thread.

    Args:
        core: The core's writer.
        tables: The tables that items may go to, by name.
        check_open: Raises UsageError once the store was closed here.
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
        """The number of the next item; items of lower ones were inserted."""
        return self._open().next_sequence

    @property
    def num_steps(self) -> int:
        """Steps appended by this writer."""
        return self._open().num_steps

    def append(
        self,
        columns: Mapping[str, Any],
        timeout_s: float | None = None,
        *,
        is_first: NDArray[np.bool_] | bool | None = None,
    ) -> int:
        """Copies one step, or N along a leading axis; blocks for memory.

        Args:
            columns: Arrays of the declared dtypes and shapes, C-contiguous or not, of
                numpy or of anything that speaks DLPack on the CPU; numbers for
                columns of no axes; nested dicts for names with ``/``.
            timeout_s: The longest wait; None: for ever.
            is_first: Whether an episode begins with the step, ``[N]`` for N steps.
                Needed where a column is stacked, at every step, so that no stack ever
                has frames of two episodes; of no use elsewhere.

        Returns:
            How many steps that were: N.

        Raises:
            UsageError: A column is missing, unknown, or of another dtype or shape;
                ``is_first`` is missing, or false at this writer's first step.
            StoreTimeout: No memory became free; the steps before are appended, and
                counted by ``num_steps``.
        """
        core = self._open()
        flags = None if is_first is None else _flags_of(is_first)
        slice_s = slice_of(timeout_s)
        try:
            count = core.append(columns, flags, slice_s)
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
        number = self._number_of(table, num_steps)
        slice_s = slice_of(timeout_s)
        try:
            if core.insert(number, num_steps, priority, sequence, version, slice_s):
                return
        except _core.CoreError as error:
            raise refused(error) from error
        except TypeError as error:
            raise _no_numbers(num_steps, priority, sequence, version) from error
        self._wait_for(
            lambda s: (
                core.insert(number, num_steps, priority, sequence, version, s) or None
            ),
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
        version: int = 0,
        timeout_s: float | None = None,
    ) -> int:
        """Makes an item of each of the steps appended last, by one command.

        An item ends with its step and has the ``num_steps - 1`` before it, whichever
        call appended them; where this writer appended fewer, the step ends no item.
        Items of other episodes' steps are left out by ``count``.

        Args:
            table: One that shares this writer's columns.
            num_steps: T of each item, at least the table's ``num_steps``.
            priorities: ``[N] float64``, or one for all; finite, 0 or more.
            count: N items, the last of which ends with the last step; None: one for
                each step of the last ``append``, of which no step lies before this
                writer's first. The priorities of those that are left out are too.
            stride: Steps from one item's end to the next's, at least 1; with T items
                share none.
            sequence: Of the first; the others follow. None: the next.
            version: Of the model that made the steps.
            timeout_s: The longest wait; None: for ever.

        Returns:
            How many items that were.

        Raises:
            UsageError: The steps are gone or an item is refused.
            StoreTimeout: The table still waits for samples; those before are in.
        """
        core = self._open()
        number = self._number_of(table, num_steps)
        if not isinstance(priorities, float):
            priorities = vector_of("priorities", priorities)
        try:
            return self._wait_for(
                lambda s: core.insert_each(
                    number, num_steps, priorities, count, stride, sequence, version, s
                ),
                timeout_s,
                f"insert into {table}",
            )
        except TypeError as error:
            raise _no_numbers(num_steps, count, stride, sequence, version) from error

    def flush(self, timeout_s: float | None = None) -> None:
        """Blocks until every insert has taken effect.

        Raises:
            UsageError: One of them was refused.
            StoreTimeout: A table still waits for samples.
        """
        core = self._open()
        self._wait_for(lambda s: core.flush(s) or None, timeout_s, "flush")

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


def _flags_of(is_first: NDArray[np.bool_] | bool) -> NDArray[np.bool_]:
    try:
        flags = np.atleast_1d(np.asarray(is_first, bool))
    except (TypeError, ValueError) as error:
        raise UsageError(f"is_first ({error}) must be booleans; pass them") from error
    check(
        flags.ndim == 1,
        "is_first",
        f"shape {list(flags.shape)}",
        "must have one axis, of steps; flatten them",
    )
    return flags


def _no_numbers(*given: object) -> UsageError:
    values = ", ".join(repr(one) for one in given)
    return UsageError(f"item ({values}) must be of numbers, 0 or more; correct them")
