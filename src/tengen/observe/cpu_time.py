"""The CPU time and the memory of a process and its descendants."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["CpuClock", "tree_cpu_s", "tree_memory_bytes"]

# Reading the table of processes takes some milliseconds, a generation no more than a
# hundred.
_LOOK_S = 2.0


class CpuClock:
    """Reads the CPU time now and then. Used by one thread at a time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s = -_LOOK_S
        self._start_s = tree_cpu_s() or 0.0

    def read(self) -> float | None:
        """Returns the CPU-seconds since this was made; None within 2 s of a call.

        Also None if the system has no such figures.
        """
        if self._clock() - self._looked_s < _LOOK_S:
            return None
        self._looked_s = self._clock()
        now_s = tree_cpu_s()
        return None if now_s is None else max(0.0, now_s - self._start_s)


def tree_cpu_s(table: Path = Path("/proc"), root: int | None = None) -> float | None:
    """Returns the CPU-seconds of a process and its descendants, of all threads.

    Descendants that have ended and were waited for count too.

    Args:
        table: Linux's table of processes.
        root: The process's id; None for this one.

    Returns:
        The seconds; None if there is no such table.
    """
    # User and system time, of the process and of ended children.
    family = _family(table, os.getpid() if root is None else root, slice(11, 15))
    return None if family is None else family / os.sysconf("SC_CLK_TCK")


def tree_memory_bytes(root: int, table: Path = Path("/proc")) -> int | None:
    """Returns the memory in use by a process and its descendants.

    Memory that several processes share counts once for each.

    Args:
        root: The process's id.
        table: Linux's table of processes.

    Returns:
        The bytes; None if there is no such table, or the process has ended.
    """
    family = _family(table, root, slice(21, 22))
    return None if family is None else family * os.sysconf("SC_PAGE_SIZE")


def _family(table: Path, root: int, wanted: slice) -> int | None:
    """Returns the sum of some fields over a process and its descendants.

    Args:
        table: The table of processes.
        root: The process's id.
        wanted: Which fields after the name; all are whole numbers.
    """
    sums: dict[int, int] = {}
    parents: dict[int, int] = {}
    for path in table.glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may contain any characters.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            sums[process] = sum(map(int, fields[wanted]))
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
    if root not in sums:
        return None
    family = {root}
    # A child may have a smaller number than its parent.
    while found := {p for p, parent in parents.items() if parent in family} - family:
        family |= found
    return sum(sums[process] for process in family)
