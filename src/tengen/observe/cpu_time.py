"""CPU time, memory and termination of a process and its descendants."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

_PROC = Path("/proc")

# Seconds between scans of the process table, which may take as long as a turn.
_LOOK_S = 5.0
# Python's shared-memory cleanup process, which exits after the process that uses it.
_TRACKER = b"multiprocessing.resource_tracker"


class CpuClock:
    """Reads the CPU time of this process and its descendants. Not thread-safe.

    Scans the process table for running descendants at most every five seconds.

    Args:
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looked_s: float | None = None
        self._running_s = 0.0
        self._told_s = 0.0

    def since_last(self) -> float:
        """Returns the CPU-seconds since the last call, or since the process started.

        The result may be slightly negative after a running descendant has ended.
        """
        times = os.times()
        own_s = sum(times[:4])
        now_s = self._clock()
        if self._looked_s is None or now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._running_s = max(0.0, (tree_cpu_s() or own_s) - own_s)
        spent_s = own_s + self._running_s
        since_s, self._told_s = spent_s - self._told_s, spent_s
        return since_s


def tree_cpu_s(root: int | None = None) -> float | None:
    """Returns the CPU-seconds of a process and its descendants, over all threads.

    Includes descendants that have ended and been waited for.

    Args:
        root: The process ID; None for this process.

    Returns:
        The seconds; None if there is no process table, or the process has ended.
    """
    # Sum the user and system time of the process and of its ended children.
    family = _family(os.getpid() if root is None else root, slice(11, 15))
    return None if family is None else family / os.sysconf("SC_CLK_TCK")


def tree_memory_bytes(root: int) -> int | None:
    """Returns the memory in use by a process and its descendants.

    Memory that several processes share counts once per process.

    Args:
        root: The process ID.

    Returns:
        The bytes; None if there is no process table, or the process has ended.
    """
    family = _family(root, slice(21, 22))
    return None if family is None else family * os.sysconf("SC_PAGE_SIZE")


def kill_descendants() -> None:
    """Kills all descendants of this process, such as a simulator that hangs.

    Does nothing if there is no process table. Processes that have left their parents,
    such as daemons, survive.
    """
    own = os.getpid()
    seen = {own}
    found: list[int] = []
    # Stop all descendants first, because a running one could start new processes.
    while new := process_fields(_PROC, own, slice(0)).keys() - seen:
        seen |= new
        for process in new:
            with contextlib.suppress(OSError):
                if _TRACKER not in (_PROC / f"{process}/cmdline").read_bytes():
                    os.kill(process, signal.SIGSTOP)
                    found.append(process)
    for process in found:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _family(root: int, wanted: slice) -> int | None:
    """Returns the sum of ``process_fields``; None if no process has the ID ``root``."""
    members = process_fields(_PROC, root, wanted)
    return sum(members.values()) if members else None


def process_fields(table: Path, root: int, wanted: slice) -> dict[int, int]:
    """Returns the sum of the ``wanted`` fields of a process and of each descendant.

    Args:
        table: Linux's process table, ``/proc``.
        root: The process ID.
        wanted: Slice of the fields after the name to sum; all must be integers.

    Returns:
        The sums by process ID; empty if no process has the ID ``root``.
    """
    sums: dict[int, int] = {}
    parents: dict[int, int] = {}
    for path in table.glob("[0-9]*/stat"):
        try:
            # The process name, in parentheses, may contain any characters.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            sums[process] = sum(map(int, fields[wanted]))
        except (OSError, ValueError, IndexError):
            continue  # the process has just ended
    if root not in sums:
        return {}
    family = {root}
    # A child may have a smaller process ID than its parent, so search repeatedly.
    while found := {p for p, parent in parents.items() if parent in family} - family:
        family |= found
    return {process: sums[process] for process in family}
