"""Named points at which a test may kill the process.

Code that makes something durable calls ``reach("publish.renamed")`` between its steps.
The call does nothing, unless the environment variable ``TENGEN_FAULT`` was
``POINT:COUNT`` when this module was imported: then the process kills itself by SIGKILL
on its COUNT-th arrival at POINT, as a machine that loses power would. Tests set the
variable for a child process; nothing else reads or sets it.
"""

from __future__ import annotations

import os
import signal

__all__ = ["reach"]


def _armed(setting: str) -> tuple[str, int]:
    point, _, count = setting.partition(":")
    return point, int(count or 1)


_point, _remaining = _armed(os.environ.get("TENGEN_FAULT", ""))


def reach(point: str) -> None:
    """Kills the process if a test armed ``point``; otherwise returns at once."""
    global _remaining
    if point != _point:
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
