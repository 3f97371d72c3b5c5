"""Plans the store table for a run's steps, and its size in memory and on the disk.

A replay is completely in memory if it fits in half of the memory that this process may
use. Otherwise memory caches recently used steps, and the disk stores all steps. In both
cases the disk stores the replay as of its last checkpoint.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tengen.cgroups import available_memory_bytes, memory_limit_bytes
from tengen.config import check
from tengen.experience.config import ReplayConfig
from tengen.experience.steps.item_layout import ItemLayout, packed_columns
from tengen.experience.steps.mixing import DEMOS
from tengen.experience.steps.slot_writer import TABLE
from tengen.store import Column, RateLimits, Selector, TableConfig, left_columns

_NUM_LENT = 2
"""Maximum number of batches on loan: the one in training, and the next (prefetch)."""

# Alignment of columns (core/store/state/schema.h), and of rows on the disk
# (core/store/steps/tier.h).
_COLUMN_BYTES = 64
_ROW_BYTES = 4096
# Bytes per item in the store in addition to its steps; see
# docs/howto/train/replay_size.md, Speed.
_ITEM_BYTES = 110
# Fraction of a memory file system for steps; the rest is for messages with clients.
_SHARED_PART = 7 / 8


class StepBudget(NamedTuple):
    """Sizes of a table's steps in several cases; the store allocates space on use."""

    memory_bytes: int
    """Memory for all steps, in bytes, even if some episodes are short."""
    disk_bytes: int
    """Disk space for all steps in the worst case, in bytes; 0 for a queue."""
    whole_memory_bytes: int
    """Memory for all steps if no episode ends, in bytes."""
    least_memory_bytes: int
    """Minimum memory in bytes; for a queue, the memory for all steps."""
    least_disk_bytes: int
    """Disk space for all steps if no episode ends, in bytes; 0 for a queue."""


class StepRoom(NamedTuple):
    """The maximum memory and disk space of a table of steps."""

    memory_bytes: int
    """Maximum memory for steps, in bytes."""
    disk_bytes: int
    """Maximum disk space in bytes; 0 for a queue, which uses no disk."""
    line: str
    """A message for the user with a replay's size and location; empty for a queue."""


class StepPlan(NamedTuple):
    """The plan of a ``StepTable``: its store table, its sizes, and its space limits."""

    table: TableConfig
    budget: StepBudget
    room: StepRoom
    demos: TableConfig | None = None
    """The store table for demonstrations; None if there are none."""


def plan_steps(
    folder: Path,
    columns: Mapping[str, Column],
    layout: ItemLayout,
    config: ReplayConfig,
    *,
    num_slots: int,
    batch_size: int,
    directory: Path | None = None,
    num_demos: int = 0,
) -> StepPlan:
    """Returns the plan of a ``StepTable`` that is created with these arguments.

    Raises:
        UsageError: The table does not fit in the memory or on the disk.
    """
    # A queue stores the items of batches on loan in addition to max_items, so that a
    # learner that restarts after a kill can sample them again.
    num_lent = _NUM_LENT * batch_size if config.is_queue else 0
    # A table created by a version without packing keeps its unpacked bool columns.
    whole = {
        name
        for place in (folder, directory)
        if place is not None
        for name, column in left_columns(place, TABLE).items()
        if column.dtype == "bool"
    }
    table = TableConfig(
        name=TABLE,
        columns={**packed_columns(columns, whole), **layout.state_columns()},
        sampler=config.selector,
        remover=Selector(kind="fifo"),
        max_items=config.max_items + num_lent,
        max_times_sampled=1 if config.is_queue else 0,
        limits=config.limits,
        num_steps=layout.num_stored,
    )
    demos = None
    if num_demos:
        # Its items are never removed, and their samples make no insert wait.
        demos = replace(table, name=DEMOS, max_items=num_demos, limits=RateLimits())
    budget = step_budget(
        replace(table, max_items=table.max_items + num_demos),
        layout,
        is_queue=config.is_queue,
        num_slots=num_slots + (num_demos > 0),
        batch_size=batch_size,
    )
    num_steps = (config.max_items + num_demos) * (layout.period + layout.is_closed)
    room = _step_room(config, budget, num_steps, table.step_bytes, folder, directory)
    return StepPlan(table, budget, room, demos)


def step_budget(
    table: TableConfig,
    layout: ItemLayout,
    *,
    is_queue: bool,
    num_slots: int,
    batch_size: int,
) -> StepBudget:
    """Returns the sizes of the steps of ``table.max_items`` items.

    For a queue, ``max_items`` includes the items of batches on loan, and all items fit
    in memory for any length of episodes, because a store that is short of memory drops
    items. A replay with unusually many resets has its oldest steps only on the disk.

    Args:
        table: The table.
        layout: Layout of the table's items.
        is_queue: Whether the table is a queue, which uses no disk.
        num_slots: Number of slots of all writers.
        batch_size: Number of items in a batch.
    """
    length = table.chunk_length
    chunk_bytes = sum(
        _up(np.dtype(one.dtype).itemsize * math.prod(one.shape) * length, _COLUMN_BYTES)
        for one in table.columns.values()
    )
    num_lent = _NUM_LENT * batch_size
    # Number of stored steps between the starts of two items. With period 1, no item
    # begins with a reset step; in episodes of one step, every second step is a reset.
    stride = layout.period + layout.is_closed * (1 + layout.num_before)
    longest = stride * (2 if layout.period == 1 else 1)
    num_items = table.max_items + (0 if is_queue else num_lent)
    # Per slot: chunks of the newest item and of later steps, and two partly full ones.
    of_slots = num_slots * (-(-(table.num_steps + longest) // length) + 2)
    most = -(-num_items * longest // length) + of_slots
    if is_queue:
        num_bytes = _with_slabs(most, chunk_bytes)
        return StepBudget(num_bytes, 0, num_bytes, num_bytes, 0)
    chunk_bytes = _up(chunk_bytes, _ROW_BYTES)
    # Enough chunks if episodes have at least four steps, as in most environments.
    usual = -(-num_items * stride * 5 // (4 * length))
    whole = -(-num_items * stride // length)
    # Memory must hold all chunks of the batches on loan. Writers leave as much memory
    # free, but at least a quarter; see Staging::max_unsaved in core/store/steps.
    of_batches = num_lent * ((table.num_steps + length - 2) // length + 1)
    shared = of_slots + of_batches + of_slots // 3 + 1
    return StepBudget(
        memory_bytes=_with_slabs(usual + shared, chunk_bytes),
        # Doubled, because a checkpoint's rows are not reused until the next checkpoint.
        disk_bytes=2 * most * chunk_bytes,
        whole_memory_bytes=_with_slabs(whole + shared, chunk_bytes),
        least_memory_bytes=_with_slabs(shared, chunk_bytes),
        least_disk_bytes=(whole + of_slots) * chunk_bytes,
    )


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def _with_slabs(num_chunks: int, chunk_bytes: int) -> int:
    """Returns the bytes for chunks, plus 1/64 because slabs may be partly unused."""
    num_bytes = num_chunks * chunk_bytes
    return num_bytes + num_bytes // 64 + chunk_bytes


def _step_room(
    config: ReplayConfig,
    budget: StepBudget,
    num_steps: int,
    step_bytes: int,
    folder: Path,
    directory: Path | None,
) -> StepRoom:
    """Returns the space limits of a table, after checking that the space is free.

    Space that a killed process used for the same table counts as free, because the
    table reuses it. Writes nothing.

    Args:
        config: The table's config.
        budget: The sizes of the table's steps.
        num_steps: Number of distinct steps in all items.
        step_bytes: Size of one step in bytes.
        folder: Folder on a disk for a replay.
        directory: Shared-memory directory of the table; None if no other process on
            this host connects.

    Raises:
        UsageError: The table does not fit in the free memory or on the disk.
    """
    memory_bytes = budget.memory_bytes
    line = ""
    if not config.is_queue:
        allowed = config.memory_bytes or _default_bytes(directory)
        check(
            allowed >= budget.least_memory_bytes,
            "store.memory_bytes",
            allowed,
            f"must be at least {budget.least_memory_bytes}, for the steps of a batch "
            "and of the actors; raise it, or lower learner.batch_size",
        )
        memory_bytes = min(memory_bytes, allowed)
        where = "in memory"
        if allowed < budget.whole_memory_bytes:
            where = f"{_size(allowed)} in memory, the rest on disk in {folder}"
        line = (
            f"replay of {num_steps:,} steps, {_size(num_steps * step_bytes)}: {where}"
        )
    _check_memory(config, budget, memory_bytes, directory)
    if not config.is_queue:
        _check_disk(config, budget.least_disk_bytes, folder)
    return StepRoom(memory_bytes, budget.disk_bytes, line)


def _default_bytes(directory: Path | None) -> int:
    """Returns half of the memory limit, but at most 7/8 of the shared file system.

    The result does not depend on free memory, because a store that is restored from
    shared memory after a kill must keep its size.
    """
    half = memory_limit_bytes() // 2
    if directory is None:
        return half
    return min(half, int(_SHARED_PART * _all_bytes(_existing(directory))))


def _check_memory(
    config: ReplayConfig,
    budget: StepBudget,
    memory_bytes: int,
    directory: Path | None,
) -> None:
    left = 0 if directory is None else _left_bytes(directory)
    of_items = config.max_items * _ITEM_BYTES
    needed = memory_bytes + of_items
    places = [(available_memory_bytes() + left, "of free memory", "")]
    if directory is not None:
        there = _existing(directory)
        places.append(
            (
                _free_bytes(there) + left,
                f"free in {there}, which actors share",
                ", or enlarge that file system",
            )
        )
    for free, which, otherwise in places:
        # Data per item is always in memory, even if the disk stores the steps.
        may_shrink = (
            not config.is_queue and budget.least_memory_bytes + of_items <= free
        )
        advice = "lower store.memory_bytes" if may_shrink else "lower it"
        check(
            needed <= free,
            "store.max_items",
            config.max_items,
            f"needs up to {_size(needed)}, more than the {_size(free)} {which}; "
            f"{advice}{otherwise}",
        )


def _check_disk(config: ReplayConfig, num_bytes: int, folder: Path) -> None:
    needed = num_bytes + config.max_items * _ITEM_BYTES
    free = _free_bytes(_existing(folder)) + _left_bytes(folder)
    check(
        needed <= free,
        "store.max_items",
        config.max_items,
        f"needs {_size(needed)}, more than the {_size(free)} free on the disk of "
        f"{folder}; free some space, or lower it",
    )


def _existing(path: Path) -> Path:
    """Returns ``path`` or its nearest existing parent folder."""
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.is_dir())


def _all_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _left_bytes(folder: Path) -> int:
    """Returns the disk usage of the files in a folder, in bytes; 0 if it is missing."""
    if not folder.is_dir():
        return 0
    return sum(512 * path.stat().st_blocks for path in folder.iterdir())


def _size(num_bytes: int) -> str:
    if num_bytes < 1e9:
        return f"{num_bytes / 1e6:,.1f} MB"
    return f"{num_bytes / 1e9:,.1f} GB"
