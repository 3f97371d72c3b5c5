"""Timeouts for processes that do not depend on the machine's other load."""

import os
import time
from pathlib import Path

_TICK_S = 0.02
_MOST_TICK_S = 0.1


def wait_own_s(happened, processes, most_s):
    """Waits until ``happened`` returns true; fails after ``most_s`` seconds.

    Counts the CPU time of the process that used most, plus the time in which none of
    ``processes`` is runnable. Does not count the time in which the processes wait for a
    CPU that other processes use.
    """
    first_s = {}
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


def _look(process):
    """Returns the CPU time of a process, and whether one of its threads is runnable."""
    total, wants_processor = 0, False
    for path in Path(f"/proc/{process}/task").glob("*/stat"):
        try:
            # The name, in parentheses, may contain any character.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # the thread has just ended
        total += int(fields[11]) + int(fields[12])
        wants_processor |= fields[0] in "RD"
    return total / os.sysconf("SC_CLK_TCK"), wants_processor
