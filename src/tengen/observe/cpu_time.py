"""A process and its descendants: their CPU time, their memory, their end."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "CpuClock",
    "kill_descendants",
    "process_fields",
    "tree_cpu_s",
    "tree_memory_bytes",
]

_PROC = Path("/proc")

# Reading the table of processes takes some milliseconds, and a turn may take no more.
_LOOK_S = 5.0
# Python's process that removes shared memory behind its user; it ends by itself.
_TRACKER = b"multiprocessing.resource_tracker"


class CpuClock:
    """Reads the CPU time of this process and its descendants. Not thread-safe.

    Descendants that still run are looked for every few seconds only.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looked_s: float | None = None
        self._running_s = 0.0
        self._told_s = 0.0

    def since_last(self) -> float:
        """Returns the CPU-seconds since the last call; at first, since the start.

        Slightly negative where a descendant has ended that was counted as running.
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
    """Returns the CPU-seconds of a process and its descendants, of all threads.

    Descendants that have ended and were waited for count too.

    Args:
        root: The process's id; None for this one.

    Returns:
        The seconds; None if there is no such table.
    """
    # User and system time, of the process and of ended children.
    family = _family(os.getpid() if root is None else root, slice(11, 15))
    return None if family is None else family / os.sysconf("SC_CLK_TCK")


def tree_memory_bytes(root: int) -> int | None:
    """Returns the memory in use by a process and its descendants.

    Memory that several processes share counts once for each.

    Args:
        root: The process's id.

    Returns:
        The bytes; None if there is no such table, or the process has ended.
    """
    family = _family(root, slice(21, 22))
    return None if family is None else family * os.sysconf("SC_PAGE_SIZE")


def kill_descendants() -> None:
    """Kills what this process has started, for one that ends without closing it.

    Such as the simulator of an environment that hangs. Does nothing where there is no
    table of processes. What has left its parents, as a daemon does, lives on.
    """
    own = os.getpid()
    seen = {own}
    found: list[int] = []
    # Stopped first: one that is killed may have just started another.
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
    """Returns the sum of ``process_fields``; None if there is no such process."""
    members = process_fields(_PROC, root, wanted)
    return sum(members.values()) if members else None


def process_fields(table: Path, root: int, wanted: slice) -> dict[int, int]:
    """Returns the sum of some fields of a process, and of each of its descendants.

    Args:
        table: Linux's table of processes.
        root: The process's id.
        wanted: Which fields after the name; all are whole numbers.

    Returns:
        The sums by process; empty if there is no such process.
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
        return {}
    family = {root}
    # A child may have a smaller number than its parent.
    while found := {p for p, parent in parents.items() if parent in family} - family:
        family |= found
    return {process: sums[process] for process in family}
