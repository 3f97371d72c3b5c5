"""CPU and memory limits of this process, from its cgroups and the machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
# cgroup v1 reports a number above this one if memory is not limited.
_NO_LIMIT_BYTES = 1 << 60


@dataclass(frozen=True)
class Cgroups:
    """The CPU and memory limits that the cgroups of a process set."""

    membership: Path = Path("/proc/self/cgroup")
    """The file that lists the process's cgroups."""
    root: Path = Path("/sys/fs/cgroup")
    """The folder in which the cgroup filesystems are mounted."""

    def quota_cores(self) -> float | None:
        """Returns the CPU quota in cores, or None if there is no quota."""
        quotas = []
        for folder in self._folders("cpu"):
            maximum = _words(folder / "cpu.max")
            if len(maximum) == 2 and maximum[0] != "max":
                quotas.append(int(maximum[0]) / int(maximum[1]))
            quota = _words(folder / "cpu.cfs_quota_us")
            period = _words(folder / "cpu.cfs_period_us")
            if quota and period and int(quota[0]) > 0:
                quotas.append(int(quota[0]) / int(period[0]))
        return min(quotas, default=None)

    def memory_limit_bytes(self) -> int:
        """Returns the machine's memory in bytes, or a cgroup limit if that is lower."""
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
        for folder in self._folders("memory"):
            for name in ("memory.max", "memory.limit_in_bytes"):
                limit = _words(folder / name)
                if limit and limit[0] != "max" and int(limit[0]) < _NO_LIMIT_BYTES:
                    limits.append(int(limit[0]))
        return min(limits)

    def available_memory_bytes(self) -> int:
        """Returns the memory in bytes that is still available; caches count as free.

        Returns ``memory_limit_bytes`` if the system does not report available memory.
        """
        found = [self.memory_limit_bytes()]
        for line in _lines(_MEMINFO):
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                found.append(int(value.split()[0]) << 10)
        for folder in self._folders("memory"):
            limit = _words(folder / "memory.max")
            used = _words(folder / "memory.current")
            if limit and used and limit[0] != "max":
                files = dict(line.split() for line in _lines(folder / "memory.stat"))
                cache = int(files.get("inactive_file", 0))
                found.append(int(limit[0]) - int(used[0]) + cache)
        return max(0, min(found))

    def _folders(self, controller: str) -> list[Path]:
        """Returns the existing cgroup folders that may limit ``controller``.

        Includes the root and all ancestors, because a container may see its own cgroup
        as the root, whatever ``membership`` says.
        """
        folders = [self.root, self.root / controller]
        for line in _lines(self.membership):
            _, names, path = line.split(":", 2)
            if names == "":
                base = self.root
            elif controller in names.split(","):
                base = self.root / controller
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


_OWN = Cgroups()
quota_cores = _OWN.quota_cores
"""``Cgroups.quota_cores`` for the cgroups of this process."""
memory_limit_bytes = _OWN.memory_limit_bytes
"""``Cgroups.memory_limit_bytes`` for the cgroups of this process."""
available_memory_bytes = _OWN.available_memory_bytes
"""``Cgroups.available_memory_bytes`` for the cgroups of this process."""
