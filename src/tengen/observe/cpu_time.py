"""The processor time of this process and all that it started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["CpuClock", "tree_cpu_s"]

# Reading the table of processes takes some milliseconds, a generation no more than a
# hundred.
_LOOK_S = 2.0


class CpuClock:
    """Tells the processor time now and then. Used by one thread at a time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s = -_LOOK_S
        self._start_s = tree_cpu_s() or 0.0

    def read(self) -> float | None:
        """Returns the seconds since this was made; None within two seconds of the last.

        None too where the system does not tell.
        """
        if self._clock() - self._looked_s < _LOOK_S:
            return None
        self._looked_s = self._clock()
        now_s = tree_cpu_s()
        return None if now_s is None else max(0.0, now_s - self._start_s)


def tree_cpu_s(table: Path = Path("/proc"), root: int | None = None) -> float | None:
    """Returns the processor seconds of a process, its children and theirs, all threads.

    Those that have ended and were waited for count too.

    Args:
        table: Linux's table of processes.
        root: The process's id; None for this one.

    Returns:
        None where there is no such table.
    """
    root = os.getpid() if root is None else root
    spent: dict[int, int] = {}
    parents: dict[int, int] = {}
    for path in table.glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may hold anything.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            # Its own, of the system for it, and both of children that have ended.
            spent[process] = sum(map(int, fields[11:15]))
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
    if root not in spent:
        return None
    family = {root}
    # A child may have a smaller number than its parent.
    while found := {p for p, parent in parents.items() if parent in family} - family:
        family |= found
    return sum(spent[process] for process in family) / os.sysconf("SC_CLK_TCK")
