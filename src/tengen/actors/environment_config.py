"""The settings of an actor of environments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tengen.config import check, check_range

__all__ = ["EnvironmentActorConfig"]


@dataclass(frozen=True, kw_only=True)
class EnvironmentActorConfig:
    """How many copies are stepped together, and for how long on one model."""

    num_envs: int = 16
    """Copies of the environment that an actor steps together, the rows of a batch; 1 to
    4096."""
    turn_steps: int = 40
    """Steps of each copy in one turn on one model, rounded up to whole items; 1 to
    1,000,000."""

    step_timeout_s: float = 120.0
    """How long the copies may take for a step or a reset, in seconds, above 0; an actor
    whose environment hangs longer is started again."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_range("num_envs", self.num_envs, 1, 4096, "8 to 64 suits a CPU")
        check_range("turn_steps", self.turn_steps, 1, 1_000_000, "use 40")
        check(
            0 < self.step_timeout_s < math.inf,
            "step_timeout_s",
            self.step_timeout_s,
            "must be above 0; allow a few times the slowest step",
        )
