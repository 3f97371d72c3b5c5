"""The GPUs of a host that a rank may use.

Source: CUDA C++ Programming Guide, "CUDA Environment Variables", CUDA_VISIBLE_DEVICES:
numbers of devices or their UUIDs, of which those before the first one that is invalid
are seen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["visible_devices"]

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NAMED = ("GPU-", "MIG-")


def visible_devices(
    environment: Mapping[str, str] | None = None, folder: Path = Path("/dev")
) -> tuple[str, ...]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.

    Args:
        environment: The environment to read; None for this process's.
        folder: The folder with a file for each GPU of the host.
    """
    count = len(list(folder.glob("nvidia[0-9]*")))
    known = os.environ if environment is None else environment
    given = known.get(_VARIABLE)
    if given is None or count == 0:
        return tuple(map(str, range(count)))
    found: list[str] = []
    for name in map(str.strip, given.split(",")):
        is_number = name.isdecimal() and int(name) < count
        if not is_number and not name.startswith(_NAMED):
            break
        found.append(name)
    return tuple(found)
