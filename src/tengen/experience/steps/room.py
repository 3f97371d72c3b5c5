"""Decides where a table's steps will be, and checks that they fit memory and disk.

A replay is wholly in memory if it fits in half of the memory that this process may use.
Otherwise memory holds the steps used last, and the disk holds all steps. In both cases
the disk has the replay as of its last checkpoint.
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

# Bytes that the store keeps for an item beside its steps: see
# docs/howto/train/replay_size.md, Speed.
_ITEM_BYTES = 110
# Share of a memory file system for steps; the rest is for messages with clients.
_SHARED_PART = 7 / 8


class StepRoom(NamedTuple):
    """The memory and disk that a table of steps may take."""

    memory_bytes: int
    disk_bytes: int
    """0 for a queue, which uses no disk."""
    line: str
    """A line for the user: how large a replay is, and where; empty for a queue."""


def step_room(
    config: ReplayConfig,
    budget: StepBudget,
    num_steps: int,
    step_bytes: int,
    folder: Path,
    directory: Path | None,
) -> StepRoom:
    """Returns the memory and disk for a table; refuses a table that does not fit.

    Space that a killed process used for the same table will be used again, and counts
    as free. Nothing is written.

    Args:
        config: The table's config.
        budget: What the table's steps need.
        num_steps: Steps of all items, each counted once.
        step_bytes: Bytes of one step.
        folder: Folder of a replay on the disk.
        directory: Folder by which the memory is shared with other processes; None: it
            is not shared.

    Raises:
        UsageError: The table does not fit the memory or the disk that is free.
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
    """Returns half of the memory, but at most what the shared file system holds.

    The result does not depend on how much is free, because a store that goes on in
    memory after a kill must have the same size as before.
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
        # The store's own data about items is in memory wherever their steps are.
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
    """Returns the path itself, or the nearest folder above it that exists."""
    path = path.absolute()
    return next(one for one in (path, *path.parents) if one.is_dir())


def _all_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _left_bytes(folder: Path) -> int:
    """Returns the bytes of the files in a folder; 0 where it does not exist."""
    if not folder.is_dir():
        return 0
    return sum(512 * path.stat().st_blocks for path in folder.iterdir())


def _size(num_bytes: int) -> str:
    if num_bytes < 1e9:
        return f"{num_bytes / 1e6:,.1f} MB"
    return f"{num_bytes / 1e9:,.1f} GB"
