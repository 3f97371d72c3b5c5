"""When training began, of runs whose result is a time.

It is kept in ``RUN/eval/target/clock.json``.
"""

from __future__ import annotations

import time

from tengen.evaluation.targets.records import TargetFiles
from tengen.run import RunDirectory, publish_json, read_object

__all__ = ["begin_clock", "read_clock"]

_SCHEMA = 1
_FILE = "clock.json"
_ADVICE = "restore it from a copy; without it the run has no result"


def begin_clock(run: RunDirectory) -> None:
    """Notes the time, unless that was done before. Only the learner may.

    Raises:
        RunError: The disk refuses.
    """
    files = TargetFiles(run)
    path = files.folder / _FILE
    if path.exists():
        return
    files.make()
    publish_json(path, {"schema": _SCHEMA, "clock_at": time.time()})


def read_clock(run: RunDirectory) -> float | None:
    """Returns when training began, UNIX seconds; None before it did.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged.
    """
    path = TargetFiles(run).folder / _FILE
    if not path.exists():
        return None
    content = read_object(path, "clock", schema=_SCHEMA, advice=_ADVICE)
    return float(content["clock_at"])
