"""Measures the CPU-seconds of a step, in this process and its descendants."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.25


def tree_cpu_seconds() -> float:
    """Returns the CPU-seconds of this process and its descendants, all threads.

    Ended descendants count if their parent waited for them.
    """
    ticks: dict[int, int] = {}
    children = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            line = (folder / "stat").read_text()
        except OSError:
            continue  # The process has ended.
        # Splits after the name, which may contain spaces.
        fields = line.rpartition(")")[2].split()
        process = int(folder.name)
        children[int(fields[1])].append(process)
        ticks[process] = sum(map(int, fields[11:15]))
    total, pending = 0, [os.getpid()]
    while pending:
        process = pending.pop()
        total += ticks.get(process, 0)
        pending += children[process]
    return total / _TICKS_PER_S


def measure(
    step: Callable[[], object],
    num_items: int,
    *,
    cpu_seconds: float,
    finish: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Repeats a step, and returns items, seconds and CPU-seconds.

    Args:
        step: The step to measure.
        num_items: Items that one step processes.
        cpu_seconds: Length of the measurement, after half as long a warm-up; not
            wall-clock time, which other users of the machine distort.
        finish: Waits until all steps have taken effect; included in the measurement.
    """
    _repeat(step, cpu_seconds / 2)
    start, start_cpu = time.perf_counter(), tree_cpu_seconds()
    count = _repeat(step, cpu_seconds)
    finish()
    return {
        "items": count * num_items,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": tree_cpu_seconds() - start_cpu,
    }


def _repeat(step: Callable[[], object], cpu_seconds: float) -> int:
    """Repeats until ``cpu_seconds`` are used; returns the number of repetitions."""
    count = 0
    end_cpu = tree_cpu_seconds() + cpu_seconds
    while tree_cpu_seconds() < end_cpu:
        until = time.perf_counter() + _LOOK_S
        while time.perf_counter() < until:
            step()
            count += 1
    return count
