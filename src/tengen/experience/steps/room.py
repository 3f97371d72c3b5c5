"""Where a table's steps are to be, in memory or on disk too, and whether they fit.

A replay is in memory where that is half of what this process may use; where it is not,
memory has the steps that were used last, and all of them are on the disk. On the disk a
replay lies in any case, as of its last checkpoint.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tengen.config import check
from tengen.experience.replay_config import ReplayConfig
from tengen.experience.steps.budget import StepBudget
from tengen.run import available_memory_bytes, memory_limit_bytes

__all__ = ["StepRoom", "step_room"]

# What the store keeps of an item beside its steps: docs/howto/train/replay_size.md,
# Speed.
_ITEM_BYTES = 110
# Of a memory file system, for steps; the rest is for what writers and samplers send.
_SHARED_PART = 7 / 8


class StepRoom(NamedTuple):
    """What a table of steps may take."""

    memory_bytes: int
    disk_bytes: int
    """0 for a queue, which has no disk."""
    line: str
    """For people: how large a replay is, and where; empty for a queue."""


def step_room(
    config: ReplayConfig,
    budget: StepBudget,
    num_steps: int,
    step_bytes: int,
    folder: Path,
    directory: Path | None,
) -> StepRoom:
    """Returns what a table takes where; refuses one that does not fit.

    What a process that was killed left of the same table is used again, and counts as
    free. Nothing is written.

    Args:
        config: The table's.
        budget: What its steps need.
        num_steps: Of all items, each once.
        step_bytes: Of one step.
        folder: Where a replay is on the disk.
        directory: Where its memory is shared with other processes; None: it is not.

    Raises:
        UsageError: It does not fit the memory, the disk, or what is free of them.
    """
    memory_bytes = budget.memory_bytes
    line = ""
    if not config.is_queue:
        allowed = config.memory_bytes or _default_bytes(directory)
        check(
            allowed >= budget.least_memory_bytes,
            "store.memory_bytes",
            allowed,
            f"must be at least {budget.least_memory_bytes}, the steps of a batch and "
            f"those that actors write; raise it, or lower learner.batch_size",
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
    """Half of the memory, and no more than there is to be shared.

    It does not depend on what is free: a store that goes on in memory after a kill must
    have as much as before.
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
    places = [(available_memory_bytes() + left, "of memory that are free", "")]
    if directory is not None:
        there = _existing(directory)
        places.append(
            (
                _free_bytes(there) + left,
                f"that are free in {there}, where actors reach it",
                ", or enlarge that file system",
            )
        )
    for free, which, otherwise in places:
        # What is kept of items is in memory wherever their steps are.
        may_shrink = (
            not config.is_queue and budget.least_memory_bytes + of_items <= free
        )
        advice = "set a lower store.memory_bytes" if may_shrink else "lower it"
        check(
            needed <= free,
            "store.max_items",
            config.max_items,
            f"must fit the {_size(free)} {which}, and takes up to {_size(needed)}; "
            f"{advice}{otherwise}",
        )


def _check_disk(config: ReplayConfig, num_bytes: int, folder: Path) -> None:
    needed = num_bytes + config.max_items * _ITEM_BYTES
    free = _free_bytes(_existing(folder)) + _left_bytes(folder)
    check(
        needed <= free,
        "store.max_items",
        config.max_items,
        f"must fit the {_size(free)} that are free on the disk of {folder}, and takes "
        f"{_size(needed)} there; free some space, or lower it",
    )


def _existing(path: Path) -> Path:
    """Returns the folder that is there, of a path and those above it."""
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.is_dir())


def _all_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _left_bytes(folder: Path) -> int:
    """Returns what the files of a folder take; 0 where it is not there."""
    if not folder.is_dir():
        return 0
    return sum(512 * path.stat().st_blocks for path in folder.iterdir())


def _size(num_bytes: int) -> str:
    if num_bytes < 1e9:
        return f"{num_bytes / 1e6:,.1f} MB"
    return f"{num_bytes / 1e9:,.1f} GB"
