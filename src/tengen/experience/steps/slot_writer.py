"""Writes the steps of an actor's slots to a table, and inserts items of these steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.experience.config import ReplayConfig
from tengen.experience.steps.item_layout import ItemLayout, pack_steps
from tengen.store import Column, StepWriter, StoreTimeout

TABLE = "steps"
"""Name of the store table that holds environment steps."""

# Stored columns that FirstPriorities.of receives in addition to its own columns.
_STORED = ("reward", "terminated", "is_reset")


@dataclass(frozen=True)
class FirstPriorities:
    """Computes the priorities of new items from the actor's network outputs."""

    columns: tuple[str, ...]
    """Columns of a step that only ``of`` needs, and that the table does not store."""
    of: Callable[[dict[str, NDArray[Any]]], NDArray[np.float64]]
    """Returns priorities ``[B]``, at least 0, from ``columns``, reward, terminated and
    is_reset, which are arrays of shape ``[B, num_steps, ...]``."""


class StepSink(Protocol):
    """A table of steps that ``SlotWriter`` writes to, in this process or another."""

    name: str
    config: ReplayConfig
    layout: ItemLayout

    @property
    def stored(self) -> Mapping[str, Column]:
        """The columns of a step in the table's packed format, by flat name."""

    @property
    def max_priority(self) -> float:
        """The maximum recent priority, for new items without a TD error."""

    def count(self, num_rows: int, num_episodes: int) -> None:
        """Adds to the table's counts of frames and of ended episodes."""


class SlotWriter:
    """Writes the steps of an actor's slots, and inserts items of these steps.

    Not thread-safe. ``append`` returns only when all its items are in the table, and
    blocks while the table is full. Otherwise a client's buffer of thousands of inserts
    would let an actor run ahead of the learner despite the table's rate limits.

    Args:
        table: The table to write to.
        writers: The store writers, one per slot.
        first: Computes the priorities of new items; None for the maximum recent one.
        sequence: Sequence number of each writer's first item, so that the store skips
            items that an earlier writer has inserted. None: all items are new.
        num_together: Number of consecutive slots that are agents of one copy of the
            environment. Their steps count as one frame.
    """

    def __init__(
        self,
        table: StepSink,
        writers: list[StepWriter],
        first: FirstPriorities | None = None,
        *,
        sequence: int | None = None,
        num_together: int = 1,
    ) -> None:
        self._table = table
        self._num_together = num_together
        self._sequences = [sequence] * len(writers)
        self._writers = writers
        self._not_stored = () if first is None else first.columns
        self._window: _PriorityWindow | None = None
        if first is not None and table.config.sampler == "prioritized":
            self._window = _PriorityWindow(first, table.layout)
        self._num_steps = 0
        reach = table.layout.num_stored - 1
        # Reset flags of each slot's last steps, which items of the next block contain.
        self._is_reset = np.zeros((len(writers), reach), np.bool_)

    def append(
        self,
        columns: Mapping[str, NDArray[Any]],
        state: Mapping[str, NDArray[Any]],
    ) -> int:
        """Appends a block of steps for every slot.

        Args:
            columns: Arrays ``[N, K, ...]``, with K from ``ItemLayout.block_steps``; for
                closed items ``[N, num_before + K + 1, ...]``, which begin with a copy
                of the steps before the block and end with the closing step. Includes
                the columns of ``FirstPriorities``.
            state: Arrays ``[N, ...]``, the recurrent state before the block's first
                step.

        Returns:
            The number of new items.

        Raises:
            RunError: The table stayed full for ``timeout_s``, or the disk is full.
        """
        layout = self._table.layout
        num_rows = columns["is_reset"].shape[1]
        is_reset = np.concatenate(
            [self._is_reset, columns["is_reset"].astype(np.bool_)], axis=1
        )
        ends = np.stack([layout.ends(self._num_steps, slot) for slot in is_reset])
        if self._window is None:
            priorities = np.full(ends.shape, self._table.max_priority)
        else:
            priorities = self._window.of(columns, ends)
        told = {n: c for n, c in columns.items() if n not in self._not_stored}
        stored = {
            **pack_steps(told, self._table.stored),
            **layout.cut(state, len(self._writers), num_rows),
        }
        num_items, timeout_s = 0, self._table.config.timeout_s
        try:
            for slot in range(len(self._writers)):
                rows = {name: column[slot] for name, column in stored.items()}
                num_new = self._write(slot, rows, ends[slot], priorities[slot])
                num_items += num_new
            for writer in self._writers:
                writer.flush(timeout_s)
        except StoreTimeout as error:
            raise RunError(
                f"experience ({self._table.name}) was full for {timeout_s:g} s; "
                "check whether the learner is alive"
            ) from error
        self._num_steps += num_rows
        self._is_reset = is_reset[:, num_rows:]
        live = slice(0, num_rows)
        if layout.is_closed:
            live = slice(layout.num_before, num_rows - 1)
        # Count episodes by their reset steps, because ``terminated`` may mark a lost
        # life. A reset step with ``truncated`` is no end; see ``tengen.actors.block``.
        # An agent that has left an episode has reset steps until the others end it.
        num_live = columns["is_reset"][:, live].shape[1]
        together = (-1, self._num_together, num_live)
        is_reset = (columns["is_reset"][:, live] != 0).reshape(together).all(axis=1)
        is_cut = (columns["truncated"][:, live] != 0).reshape(together).any(axis=1)
        is_end = is_reset & ~is_cut
        self._table.count(int((~is_reset).sum()), int(is_end.sum()))
        return num_items

    def _write(
        self,
        slot: int,
        rows: Mapping[str, NDArray[Any]],
        ends: NDArray[np.bool_],
        priorities: NDArray[np.float64],
    ) -> int:
        """Appends a slot's steps, and inserts an item for each True in ``ends``."""
        config, layout = self._table.config, self._table.layout
        writer, sequence = self._writers[slot], self._sequences[slot]
        done = num_items = 0
        for first, last in _runs(ends):
            writer.append(_rows(rows, done, last), config.timeout_s)
            writer.insert_each(
                self._table.name,
                layout.num_stored,
                priorities[first:last],
                count=last - first,
                sequence=None if sequence is None else sequence + num_items,
                timeout_s=config.timeout_s,
            )
            num_items += last - first
            done = last
        if sequence is not None:
            self._sequences[slot] = sequence + num_items
        if done < len(ends):
            writer.append(_rows(rows, done, len(ends)), config.timeout_s)
        return num_items


class _PriorityWindow:
    """Computes item priorities; stores each slot's last steps for items in progress.

    Legend: N slots, K steps of a block.
    """

    def __init__(self, first: FirstPriorities, layout: ItemLayout) -> None:
        """Creates a window without steps.

        Args:
            first: Computes the priorities of items.
            layout: Layout of the items.
        """
        self._first = first
        self._layout = layout
        self._before: dict[str, NDArray[Any]] = {}

    def of(
        self, columns: Mapping[str, NDArray[Any]], ends: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Returns ``[N, K]``, the priority of the item that ends with each step.

        Args:
            columns: Arrays ``[N, K, ...]``, the next steps of every slot.
            ends: A mask ``[N, K]`` of the steps with which an item ends; the result is
                0 for other steps.
        """
        reach = self._layout.num_stored - 1
        priorities = np.zeros(ends.shape)
        items: dict[str, NDArray[Any]] = {}
        for name in (*_STORED, *self._first.columns):
            column = columns[name]
            before = self._before.get(name)
            if before is None:
                before = np.zeros((len(column), reach, *column.shape[2:]), column.dtype)
            steps = np.concatenate([before, column], axis=1)
            self._before[name] = steps[:, column.shape[1] :]
            windows = np.lib.stride_tricks.sliding_window_view(steps, reach + 1, axis=1)
            # Drop each item's first num_before steps, which only provide past inputs.
            chosen = np.moveaxis(windows[ends], -1, 1)
            items[name] = chosen[:, self._layout.num_before :]
        if ends.any():
            priorities[ends] = self._first.of(items)
        return priorities


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Returns the bounds of each run of True, the second bound exclusive."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def _rows(columns: Mapping[str, NDArray[Any]], first: int, last: int) -> dict[str, Any]:
    """Returns rows ``[first, last)``, nested at each ``/`` in the column names."""
    nested: dict[str, Any] = {}
    for name, column in columns.items():
        *outer, inner = name.split("/")
        place = nested
        for word in outer:
            place = place.setdefault(word, {})
        place[inner] = column[first:last]
    return nested
