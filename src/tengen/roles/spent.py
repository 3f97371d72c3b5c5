"""What earlier calls of ``tengen train`` gave a run, as its newest checkpoint says."""

from __future__ import annotations

from typing import Any, NamedTuple

from tengen.learners.checkpoint_json import read_extra
from tengen.run import RunDirectory

__all__ = ["RunSpent", "core_minutes_of", "read_spent"]


class RunSpent(NamedTuple):
    """What a run has been given."""

    core_minutes: float = 0.0
    """Wall minutes of calls times their cores; what came after the newest checkpoint
    does not count, for nothing was made of it."""
    num_frames: int = 0
    """Steps of environments, or rows of games."""


def read_spent(run: RunDirectory) -> RunSpent:
    """Returns what the newest checkpoint says; nothing where there is none.

    Raises:
        UsageError: The checkpoint is of another schema.
        RunError: It is damaged.
    """
    number = run.checkpoints.latest()
    if number is None:
        return RunSpent()
    extra = read_extra(run.checkpoints.entry(number))
    num_frames = int(extra.get("data", {}).get("num_rows", 0))
    return RunSpent(core_minutes_of(extra), num_frames)


def core_minutes_of(extra: dict[str, Any]) -> float:
    """Returns the core-minutes of a checkpoint; one of an earlier version has none."""
    return float(extra.get("core_minutes", 0.0))
