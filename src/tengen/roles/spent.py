"""The CPU time and frames spent on a run by earlier calls of ``tengen train``.

A checkpoint stores the amounts at the start of its turn. A call that ends normally
writes its total to ``RUN/spent.json``; a killed call does not. In a run whose result is
its training time, ``RUN/eval/began.json`` stores the time at which learning began.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

from tengen.errors import RunError
from tengen.learners.checkpoint import read_checkpoint_json, read_extra
from tengen.run import (
    RunDirectory,
    make_directory,
    publish_json,
    read_object,
    storage_error,
)

_FILE, _BEGAN = "spent.json", "began.json"
_BEGAN_SCHEMA = 1
_MOST_BYTES = 4096


class RunSpent(NamedTuple):
    """The CPU time and frames spent on a run."""

    core_minutes: float = 0.0
    """CPU-minutes of all calls' processes without their start-up; for a killed call,
    only up to its last checkpoint. Earlier versions counted wall-clock minutes times
    cores."""
    num_frames: int = 0
    """Number of environment steps, or of rows in runs of games."""


def read_spent(run: RunDirectory) -> RunSpent:
    """Returns the amounts recorded by the newest checkpoint and the last call.

    Raises:
        UsageError: The checkpoint has an unsupported schema.
        RunError: A file is damaged.
    """
    told = _told(run.path / _FILE)
    number = run.checkpoints.latest()
    if number is None:
        return RunSpent(told)
    extra = read_extra(run.checkpoints.entry(number))
    num_frames = int(extra.get("data", {}).get("num_rows", 0))
    return RunSpent(max(told, core_minutes_of(extra)), num_frames)


def record_began(run: RunDirectory) -> None:
    """Records the current time as the start of learning, once. Only for the learner.

    Raises:
        RunError: Writing to the disk failed.
    """
    path = run.eval / _BEGAN
    if path.exists():
        return
    make_directory(path.parent)
    began_at = round(time.time(), 3)
    publish_json(path, {"schema": _BEGAN_SCHEMA, "clock_at": began_at})


def read_began(run: RunDirectory) -> float | None:
    """Returns the time when learning began, in UNIX seconds; None if not recorded.

    Raises:
        UsageError: The file has a newer schema.
        RunError: The file is damaged.
    """
    path = run.eval / _BEGAN
    if not path.exists():
        return None
    advice = "restore it from a copy; without it the run has no result"
    content = read_object(path, "clock", schema=_BEGAN_SCHEMA, advice=advice)
    try:
        return float(content["clock_at"])
    except (LookupError, TypeError, ValueError):
        raise RunError(f"clock ({path}) is damaged; {advice}") from None


def learned_steps(run: RunDirectory) -> int:
    """Returns the number of learner steps in the newest checkpoint; 0 if there is none.

    Raises:
        UsageError: The newest checkpoint has an unsupported schema.
        RunError: The newest checkpoint is damaged.
    """
    number = run.checkpoints.latest()
    if number is None:
        return 0
    return int(read_checkpoint_json(run.checkpoints.entry(number))["num_steps"])


def record_spent(run: RunDirectory, core_minutes: float) -> None:
    """Publishes the CPU time spent on a run, at the end of a call.

    Args:
        run: The run; the caller holds its ``train`` lock.
        core_minutes: CPU-minutes of all calls, including this one.

    Raises:
        RunError: Writing to the disk failed.
    """
    publish_json(run.path / _FILE, {"core_minutes": core_minutes})


def _told(path: Path) -> float:
    try:
        content = json.loads(path.read_bytes()[:_MOST_BYTES])
        core_minutes = float(content["core_minutes"])
    except FileNotFoundError:
        return 0.0
    except OSError as error:
        raise storage_error(path, error) from error
    except (ValueError, TypeError, LookupError):
        core_minutes = math.nan
    if not 0 <= core_minutes < math.inf:
        raise RunError(
            f"{path} is damaged; remove it, and the run counts from its checkpoint on"
        )
    return core_minutes


def core_minutes_of(extra: dict[str, Any]) -> float:
    """Returns the core-minutes of a checkpoint; 0 if an earlier version wrote it."""
    return float(extra.get("core_minutes", 0.0))
