"""Computes the memory and disk that a table of steps takes, before it is made."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tengen.experience.steps.item_layout import ItemLayout
from tengen.store import TableConfig

__all__ = ["NUM_LENT", "StepBudget", "step_budget"]

NUM_LENT = 2
"""Batches that are out at once: one trains while the next one is drawn."""

# Alignment of columns (core/store/state/schema.h), and of rows on the disk
# (core/store/steps/tier.h).
_COLUMN_BYTES = 64
_ROW_BYTES = 4096


class StepBudget(NamedTuple):
    """The most bytes that the steps of a table may take; unused ones are not taken."""

    memory_bytes: int
    """Memory with all steps in it, where some episodes are short."""
    disk_bytes: int
    """Disk, in the worst case; 0 for a queue, which uses no disk."""
    whole_memory_bytes: int
    """Memory with all steps in it, where no episode ends."""
    least_memory_bytes: int
    """Least memory, with the other steps on the disk; a queue has all in memory."""
    least_disk_bytes: int
    """Disk, where no episode ends; 0 for a queue."""


def step_budget(
    table: TableConfig,
    layout: ItemLayout,
    *,
    is_queue: bool,
    num_slots: int,
    batch_size: int,
) -> StepBudget:
    """Returns what ``table.max_items`` items need, however long their episodes are.

    For a queue, the items of batches that are out are included.

    A queue must be in memory as a whole: where memory is short, a store makes room by
    removing items, and a queue's items were not learned from yet. A replay with more
    resets than usual has its oldest steps on the disk only.

    Args:
        table: The table.
        layout: Layout of the table's items.
        is_queue: Whether the table is a queue, which is in memory only.
        num_slots: Slots of all writers.
        batch_size: Items of a batch.
    """
    length = table.chunk_length
    chunk_bytes = sum(
        _up(np.dtype(one.dtype).itemsize * math.prod(one.shape) * length, _COLUMN_BYTES)
        for one in table.columns.values()
    )
    num_lent = NUM_LENT * batch_size
    # Steps from an item's first step to the next item's. Items of period 1 do not begin
    # with a reset: with episodes of a single step, every second step is a reset.
    stride = layout.period + layout.is_closed * (1 + layout.num_before)
    longest = stride * (2 if layout.period == 1 else 1)
    num_items = table.max_items + (0 if is_queue else num_lent)
    # A slot's newest item, the steps appended after it, and two partly used chunks.
    of_slots = num_slots * (-(-(table.num_steps + longest) // length) + 2)
    most = -(-num_items * longest // length) + of_slots
    if is_queue:
        num_bytes = _with_slabs(most, chunk_bytes)
        return StepBudget(num_bytes, 0, num_bytes, num_bytes, 0)
    chunk_bytes = _up(chunk_bytes, _ROW_BYTES)
    # For most environments: enough for episodes of four steps and more.
    usual = -(-num_items * stride * 5 // (4 * length))
    whole = -(-num_items * stride // length)
    # All chunks of a batch are in memory at once. Writers may use neither that part nor
    # the last quarter; see Staging::max_unsaved in core/store/steps/staging.cc.
    of_batches = num_lent * ((table.num_steps + length - 2) // length + 1)
    shared = of_slots + of_batches + of_slots // 3 + 1
    return StepBudget(
        memory_bytes=_with_slabs(usual + shared, chunk_bytes),
        # Doubled: rows of the last checkpoint are not reused before the next one.
        disk_bytes=2 * most * chunk_bytes,
        whole_memory_bytes=_with_slabs(whole + shared, chunk_bytes),
        least_memory_bytes=_with_slabs(shared, chunk_bytes),
        least_disk_bytes=(whole + of_slots) * chunk_bytes,
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _with_slabs(num_chunks: int, chunk_bytes: int) -> int:
    """Returns bytes that hold so many chunks in whole slabs, each at most a 128th."""
    num_bytes = num_chunks * chunk_bytes
    return num_bytes + num_bytes // 64 + chunk_bytes
