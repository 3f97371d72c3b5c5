"""Named points at which a test may kill the process.

Code that makes something durable calls ``reach("publish.renamed", path)`` between its
steps. The call does nothing, unless the environment variable ``TENGEN_FAULT`` was
``POINT:COUNT`` or ``POINT:COUNT:PART`` when this module was imported: then the process
kills itself by SIGKILL on its COUNT-th arrival at POINT with PART in the path, as a
machine that loses power would. Every path of a run has one writer, so that
``checkpoints/`` kills the learner and ``run.json`` the runner. Tests set the variable
for a child process; nothing else reads or sets it.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

__all__ = ["reach"]


def _armed(setting: str) -> tuple[str, int, str]:
    point, count, part = (*setting.split(":", 2), "", "")[:3]
    return point, int(count or 1), part


_point, _remaining, _part = _armed(os.environ.get("TENGEN_FAULT", ""))


def reach(point: str, path: Path) -> None:
    """Kills the process if a test armed ``point`` for ``path``; else returns at once.

    Args:
        point: The step that was just made.
        path: The final path of what is being made durable.
    """
    global _remaining
    if point != _point or _part not in str(path):
        return
    _remaining -= 1
    if _remaining == 0:
        os.kill(os.getpid(), signal.SIGKILL)
