"""What earlier calls of ``tengen train`` have spent on a run, and since when.

A checkpoint says what was spent when its turn began. A call that ends writes the rest
to ``RUN/spent.json``; a call that is killed does not. ``RUN/eval/began.json`` says when
the learner began, in a run whose result is a time.
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

__all__ = [
    "RunSpent",
    "core_minutes_of",
    "learned_steps",
    "read_began",
    "read_spent",
    "record_began",
    "record_spent",
]

_FILE, _BEGAN = "spent.json", "began.json"
_BEGAN_SCHEMA = 1
_MOST_BYTES = 4096


class RunSpent(NamedTuple):
    """What has been spent on a run."""

    core_minutes: float = 0.0
    """CPU-minutes of all calls' processes without their start-up; for a call that was
    killed, up to its last checkpoint. Earlier versions counted wall minutes times
    cores."""
    num_frames: int = 0
    """Environment steps, or rows of games."""


def read_spent(run: RunDirectory) -> RunSpent:
    """Returns what the newest checkpoint and the last call recorded.

    Raises:
        UsageError: The checkpoint has another schema.
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
    """Records when learning begins, unless recorded before. Only for the learner.

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
    """Returns when learning began, in UNIX seconds; None if that was not recorded.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged.
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
    """Returns the learner steps that a run has saved; 0 before the first.

    Raises:
        UsageError: The newest checkpoint has another schema.
        RunError: It is damaged.
    """
    number = run.checkpoints.latest()
    if number is None:
        return 0
    return int(read_checkpoint_json(run.checkpoints.entry(number))["num_steps"])


def record_spent(run: RunDirectory, core_minutes: float) -> None:
    """Publishes what was spent on a run until the end of a call.

    Args:
        run: The run; the caller holds its ``train`` lock.
        core_minutes: CPU-minutes of all calls.

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
