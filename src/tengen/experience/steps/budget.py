"""What a table of steps takes in memory and on disk, told before it is made."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tengen.experience.steps.item_layout import ItemLayout
from tengen.store import TableConfig

__all__ = ["NUM_LENT", "StepBudget", "step_budget"]

NUM_LENT = 2
"""Batches that the learner has: one, and the next one is drawn meanwhile."""

# As core/store/state/schema.h lays columns out, and core/store/steps/tier.h the rows
# of the disk.
_COLUMN_BYTES = 64
_ROW_BYTES = 4096


class StepBudget(NamedTuple):
    """The most that the steps of a table may take; what is not needed is not taken."""

    memory_bytes: int
    """With all steps in it, where a few episodes are short."""
    disk_bytes: int
    """0 for a queue, which has no disk."""
    whole_memory_bytes: int
    """With all steps in it, where no episode ends."""
    least_memory_bytes: int
    """With the others on the disk; a queue's are never there."""
    least_disk_bytes: int
    """What the steps take there where no episode ends; 0 for a queue."""


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
        num_bytes = _with_slabs(most, chunk_bytes)
        return StepBudget(num_bytes, 0, num_bytes, num_bytes, 0)
    chunk_bytes = _up(chunk_bytes, _ROW_BYTES)
    # Of most environments; episodes of four steps and more fit.
    usual = -(-num_items * stride * 5 // (4 * length))
    whole = -(-num_items * stride // length)
    # A batch's chunks are all there at once, and writers never have that part nor the
    # last quarter; see Staging::max_unsaved in core/store/steps/staging.cc.
    of_batches = num_lent * ((table.num_steps + length - 2) // length + 1)
    shared = of_slots + of_batches + of_slots // 3 + 1
    return StepBudget(
        memory_bytes=_with_slabs(usual + shared, chunk_bytes),
        # Rows that the last checkpoint names are not used again before the next one.
        disk_bytes=2 * most * chunk_bytes,
        whole_memory_bytes=_with_slabs(whole + shared, chunk_bytes),
        least_memory_bytes=_with_slabs(shared, chunk_bytes),
        least_disk_bytes=(whole + of_slots) * chunk_bytes,
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _with_slabs(num_chunks: int, chunk_bytes: int) -> int:
    """Returns a budget whose whole slabs, of a 128th of it at most, hold so many."""
    num_bytes = num_chunks * chunk_bytes
    return num_bytes + num_bytes // 64 + chunk_bytes
