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

    Those are the CPU time of the processes, and the time in which none of them wants a
    processor. The time in which other processes have the processors does not count.
    """
    spent_s = 0.0
    used_s = {process: _look(process)[0] for process in processes()}
    last_s = time.monotonic()
    while not happened():
        time.sleep(_TICK_S)
        cpu_s, is_waiting = 0.0, True
        for process in processes():
            now_used_s, wants_processor = _look(process)
            cpu_s += max(0.0, now_used_s - used_s.get(process, 0.0))
            used_s[process] = now_used_s
            is_waiting &= not wants_processor
        now_s = time.monotonic()
        idle_s = min(now_s - last_s, _MOST_TICK_S) if is_waiting else 0.0
        last_s = now_s
        spent_s += max(cpu_s, idle_s)
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
