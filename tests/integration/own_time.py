"""Bounds on the time that processes take for themselves, on however busy a machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["wait_own_s"]

_TICK_S = 0.02
_MOST_TICK_S = 0.1


def wait_own_s(
    happened: Callable[[], object],
    processes: Callable[[], Iterable[int]],
    most_s: float,
) -> None:
    """Returns once something is true; fails after seconds of some processes' own.

    Those are the CPU time of the process that used most, and the time in which none of
    them wants a processor. The time in which other processes have the processors does
    not count.
    """
    first_s: dict[int, float] = {}
    most_used_s = idle_s = 0.0
    last_s = time.monotonic()
    while not happened():
        time.sleep(_TICK_S)
        is_waiting = True
        for process in processes():
            used_s, wants_processor = _look(process)
            most_used_s = max(most_used_s, used_s - first_s.setdefault(process, used_s))
            is_waiting &= not wants_processor
        now_s = time.monotonic()
        if is_waiting:
            idle_s += min(now_s - last_s, _MOST_TICK_S)
        last_s = now_s
        spent_s = most_used_s + idle_s
        assert spent_s < most_s, f"it has not happened within {spent_s:.1f} s"


def _look(process: int) -> tuple[float, bool]:
    """Returns a process's CPU time, and whether a thread of it runs or would run."""
    total, wants_processor = 0, False
    for path in Path(f"/proc/{process}/task").glob("*/stat"):
        try:
            # The name, in brackets, may contain any characters.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        total += int(fields[11]) + int(fields[12])
        wants_processor |= fields[0] in "RD"
    return total / os.sysconf("SC_CLK_TCK"), wants_processor
