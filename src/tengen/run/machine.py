"""The machine's resources that this process may use, and ``RUN/code.txt``.

A container sees every core of its host but is throttled to its quota, so the number of
cores is the minimum of the affinity mask and the cgroup quota. ``code.txt`` records the
code, the libraries and the machines of a run.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

from tengen.cgroups import memory_limit_bytes, quota_cores
from tengen.config import check_range
from tengen.distribution import DISTRIBUTION, checkout
from tengen.errors import TengenWarning

MAX_THREADS = 1024
"""The maximum number of threads; a greater number is assumed to be a typo."""

_LIBRARIES = ("numpy", "torch", "openvino", "onnx", "gymnasium")
_PACKAGE = Path(__file__).resolve().parent.parent
_CPUINFO = Path("/proc/cpuinfo")
_STATM = Path("/proc/self/statm")
# Parameters of glibc's allocator, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def available_cores() -> int:
    """Returns the number of threads that can run in parallel here, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = quota_cores()
    return max(1, cores if quota is None else min(cores, math.floor(quota)))


def usable_threads(threads: int | None) -> int:
    """Returns ``threads``, limited to the available cores with a TengenWarning.

    More threads than cores would preempt each other, which reduces throughput.

    Args:
        threads: The requested number, 1 to MAX_THREADS; None for all cores.

    Raises:
        UsageError: ``threads`` is out of its range.
    """
    cores = available_cores()
    if threads is None:
        return cores
    check_range("threads", threads, 1, MAX_THREADS, "leave it out for the default")
    if threads <= cores:
        return threads
    warnings.warn(
        f"threads ({threads}) must be at most {cores}, the cores that this process "
        f"may use; {cores} {'is' if cores == 1 else 'are'} used",
        TengenWarning,
        stacklevel=3,
    )
    return cores


def keep_freed_memory() -> bool:
    """Makes the C allocator reuse freed memory instead of returning it to the kernel.

    Every training step allocates and frees the same buffers. By default glibc returns
    large buffers to the kernel and gets zeroed pages back, which takes a fifth of a
    small network's step.

    Returns:
        Whether the allocator accepted the settings; only glibc has them.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # 32 MiB is the maximum that older versions of glibc accept.
    did_map = set_option(_M_MMAP_THRESHOLD, 32 << 20)
    return bool(did_map and set_option(_M_TRIM_THRESHOLD, (1 << 31) - 1))


def _cpu_lines() -> list[str]:
    try:
        return _CPUINFO.read_text().splitlines()
    except OSError:
        return []


def cpu_features() -> frozenset[str]:
    """Returns the CPU's feature flags under Linux's names; empty on other systems."""
    for line in _cpu_lines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def cpu_name() -> str:
    """Returns the CPU's model name."""
    for line in _cpu_lines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def machine_line() -> str:
    """Returns a one-line description of the machine, for measurements."""
    memory_gib = memory_limit_bytes() / 2**30
    return (
        f"{cpu_name()}, {available_cores()} of {os.cpu_count()} cores, "
        f"{memory_gib:.0f} GiB, {platform.system()} {platform.release()}"
    )


def resident_bytes() -> int:
    """Returns this process's resident memory in bytes, or its peak outside Linux."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource  # Windows does not have it.

        # ``ru_maxrss`` is in KiB, except on macOS, where it is in bytes.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def code_text() -> str:
    """Returns the block of lines ``name: value`` in ``code.txt`` for this process."""
    source = source_sha256()
    rows = {
        "tengen": _version(DISTRIBUTION),
        "commit": _commit(source),
        "source sha256": source,
        "python": platform.python_version(),
        **{name: _version(name) for name in _LIBRARIES},
        "machine": machine_line(),
    }
    return "".join(f"{name}: {value}\n" for name, value in rows.items())


def source_sha256(package: Path = _PACKAGE) -> str:
    """Returns a hash of the names and contents of the package's Python files.

    The hash identifies code without a commit, such as an installation or local edits.
    """
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _version(name: str) -> str:
    from importlib import metadata  # takes 20 ms, and few commands need it

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _commit(source: str) -> str:
    """Returns the commit of this package's checkout, or ``unknown``.

    Args:
        source: The ``source_sha256`` of this package.
    """
    folder = checkout() or _PACKAGE.parent.parent

    def git(*arguments: str) -> str:
        # Without this option, git status takes a lock, which remains if git is killed.
        command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "HEAD")
        if not commit:
            return "unknown"
        # The checkout may have changed since the package was installed from it.
        is_same = source_sha256(folder / "src" / "tengen") == source
        if is_same and not git("status", "--porcelain", "--untracked-files=no"):
            return commit
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return f"{commit} with changes"
