"""What a table of steps takes in memory and on disk, told before it is made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tengen.errors import RunError
from tengen.experience.steps.item_layout import ItemLayout
from tengen.run import available_memory_bytes
from tengen.store import TableConfig

__all__ = ["NUM_LENT", "StepBudget", "check_step_memory", "step_budget"]

NUM_LENT = 2
"""Batches that the learner has: one, and the next one is drawn meanwhile."""

# As core/store/state/schema.h lays columns out, and core/store/steps/tier.h the rows
# of the disk.
_COLUMN_BYTES = 64
_ROW_BYTES = 4096
# What the store keeps of an item beside its steps: docs/replay_size.md, Speed.
_ITEM_BYTES = 110


class StepBudget(NamedTuple):
    """The most that the steps of a table may take; what is not needed is not taken."""

    memory_bytes: int
    disk_bytes: int
    """0 for a queue, which has no disk."""


def step_budget(
    table: TableConfig,
    layout: ItemLayout,
    *,
    is_queue: bool,
    num_slots: int,
    batch_size: int,
) -> StepBudget:
    """Returns what ``table.max_items`` items need, whatever their episodes are.

    Those of a queue have the lent ones among them.

    A queue must have it all in memory: where memory is short a store makes room by
    removing items, and of a queue those were never learned from. A replay that has
    more resets than most has its oldest steps on disk alone.

    Args:
        table: The table.
        layout: Of its items.
        is_queue: Whether it is in memory alone.
        num_slots: Of all writers.
        batch_size: Items of a batch.
    """
    length = table.chunk_length
    chunk_bytes = sum(
        _up(np.dtype(one.dtype).itemsize * math.prod(one.shape) * length, _COLUMN_BYTES)
        for one in table.columns.values()
    )
    num_lent = NUM_LENT * batch_size
    # Steps from the first of an item to the next one's. Resets begin no items of period
    # 1: every second step is one where episodes have a single step.
    stride = layout.period + layout.is_closed * (1 + layout.num_before)
    longest = stride * (2 if layout.period == 1 else 1)
    num_items = table.max_items + (0 if is_queue else num_lent)
    # A slot's newest item, what is appended behind it, and two chunks in part of use.
    of_slots = num_slots * (-(-(table.num_steps + longest) // length) + 2)
    most = -(-num_items * longest // length) + of_slots
    if is_queue:
        return StepBudget(_with_slabs(most, chunk_bytes), 0)
    chunk_bytes = _up(chunk_bytes, _ROW_BYTES)
    # Of most environments; episodes of four steps and more fit.
    usual = -(-num_items * stride * 5 // (4 * length)) + of_slots
    # A batch's chunks are all there at once, and writers never have that part nor the
    # last quarter; see Staging::max_unsaved in core/store/steps/staging.cc.
    of_batches = num_lent * ((table.num_steps + length - 2) // length + 1)
    # Rows that the last checkpoint names are not used again before the next one.
    return StepBudget(
        _with_slabs(usual + of_batches + of_slots // 3 + 1, chunk_bytes),
        2 * most * chunk_bytes,
    )


def check_step_memory(
    max_items: int, budget: StepBudget, directory: Path | None = None
) -> None:
    """Refuses a table that does not fit the memory.

    Args:
        max_items: Of the table, as the user set it.
        budget: What the table takes.
        directory: Where its memory is shared; what a killed process left there is used
            again.

    Raises:
        RunError: It does not fit.
    """
    needed = budget.memory_bytes + max_items * _ITEM_BYTES
    free = available_memory_bytes()
    if directory is not None and directory.is_dir():
        left = (path.stat() for path in directory.iterdir())
        free += sum(512 * found.st_blocks for found in left)
    if needed > free:
        raise RunError(
            f"store.max_items ({max_items}) must fit the {free / 1e9:.1f} GB of "
            f"memory that are free, and takes up to {needed / 1e9:.1f} GB; lower it"
        )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _with_slabs(num_chunks: int, chunk_bytes: int) -> int:
    """Returns a budget whose whole slabs, of a 128th of it at most, hold so many."""
    num_bytes = num_chunks * chunk_bytes
    return num_bytes + num_bytes // 64 + chunk_bytes
