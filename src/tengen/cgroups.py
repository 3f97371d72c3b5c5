"""CPU and memory limits of this process, from its cgroups and the machine."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory_bytes", "memory_limit_bytes", "quota_cores"]

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")
# A cgroup v1 memory limit above this number stands for no limit.
_NO_LIMIT_BYTES = 1 << 60


def quota_cores(
    membership: Path = _MEMBERSHIP, cgroups: Path = _CGROUPS
) -> float | None:
    """Returns the CPU quota in cores, or None if there is no quota.

    Args:
        membership: The file with the process's cgroups.
        cgroups: The folder where cgroups are mounted.
    """
    quotas = []
    for folder in _folders(membership, cgroups, "cpu"):
        maximum = _words(folder / "cpu.max")
        if len(maximum) == 2 and maximum[0] != "max":
            quotas.append(int(maximum[0]) / int(maximum[1]))
        quota = _words(folder / "cpu.cfs_quota_us")
        period = _words(folder / "cpu.cfs_period_us")
        if quota and period and int(quota[0]) > 0:
            quotas.append(int(quota[0]) / int(period[0]))
    return min(quotas, default=None)


def memory_limit_bytes(membership: Path = _MEMBERSHIP, cgroups: Path = _CGROUPS) -> int:
    """Returns the memory limit of this process, from the machine and its cgroups.

    Args:
        membership: The file with the process's cgroups.
        cgroups: The folder where cgroups are mounted.
    """
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _folders(membership, cgroups, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = _words(folder / name)
            if limit and limit[0] != "max" and int(limit[0]) < _NO_LIMIT_BYTES:
                limits.append(int(limit[0]))
    return min(limits)


def available_memory_bytes(
    membership: Path = _MEMBERSHIP, cgroups: Path = _CGROUPS
) -> int:
    """Returns the memory that this process can still allocate, including file caches.

    If the system does not report usage, returns the memory limit.

    Args:
        membership: The file with the process's cgroups.
        cgroups: The folder where cgroups (version 2) are mounted.
    """
    found = [memory_limit_bytes()]
    for line in _lines(_MEMINFO):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            found.append(int(value.split()[0]) << 10)
    for folder in _folders(membership, cgroups, "memory"):
        limit, used = _words(folder / "memory.max"), _words(folder / "memory.current")
        if limit and used and limit[0] != "max":
            files = dict(line.split() for line in _lines(folder / "memory.stat"))
            cache = int(files.get("inactive_file", 0))
            found.append(int(limit[0]) - int(used[0]) + cache)
    return max(0, min(found))


def _folders(membership: Path, cgroups: Path, controller: str) -> list[Path]:
    """Returns the cgroup folders that may limit ``controller``.

    A container may see its own cgroup as the root, although ``membership`` has a longer
    path. So all ancestors are included, and folders that do not exist are skipped.
    """
    folders = [cgroups, cgroups / controller]
    for line in _lines(membership):
        _, names, path = line.split(":", 2)
        if names == "":
            base = cgroups
        elif controller in names.split(","):
            base = cgroups / controller
        else:
            continue
        own = base / path.strip("/")
        folders += [own, *(up for up in own.parents if up.is_relative_to(base))]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    lines = _lines(path)
    return lines[0].split() if lines else []
