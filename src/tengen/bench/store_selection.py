"""Draws of the experience store alone: which items come next, and nothing else."""

from __future__ import annotations

import statistics
from typing import Any

from tengen import _core

__all__ = ["run_selection"]

_SIZES = (400_000, 100_000_000)
_BATCH_SIZE = 32
_NUM_BATCHES = 20_000
_NUM_TURNS = 3


def run_selection() -> dict[str, Any]:
    """Returns one row for each sampler and size: median microseconds of an item.

    For prioritized samplers the draw and the learner's new priority both count. The
    largest tables take 2 GB.
    """
    rows = []
    for num_items in _SIZES:
        for kind in ("uniform", "prioritized"):
            seconds = statistics.median(
                _core.benchmark_selection(kind, num_items, _BATCH_SIZE, _NUM_BATCHES)
                for _ in range(_NUM_TURNS)
            )
            rows.append(
                {
                    "sampler": kind,
                    "items": num_items,
                    "batch": _BATCH_SIZE,
                    "us/item": 1e6 * seconds / (_BATCH_SIZE * _NUM_BATCHES),
                }
            )
    return {"name": "store", "selection": True, "rows": rows}
