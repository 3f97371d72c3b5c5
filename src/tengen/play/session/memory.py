"""How much memory this process has."""

from __future__ import annotations

import os
import resource
from pathlib import Path

__all__ = ["resident_bytes"]

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Returns the memory that is resident now; the most that ever was, off Linux."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        # In kB, but on macOS in bytes.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if os.uname().sysname == "Darwin" else most * 1024
