"""The settings of an actor of environments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tengen.bounds import bounded, check_fields

__all__ = ["EnvironmentActorConfig"]


@dataclass(frozen=True, kw_only=True)
class EnvironmentActorConfig:
    """How many copies are stepped together, and for how long on one model."""

    num_envs: int = bounded(16, 1, 4096, "8 to 64 suits a CPU")
    """Copies of the environment that an actor steps together, the rows of a batch; 1 to
    4096."""
    num_groups: int = bounded(2, 1, 8, "use 2")
    """Groups of the copies that an actor steps in turns where inference is another
    process: one is stepped while another is answered; 1 to 8."""
    turn_steps: int = bounded(40, 1, 1_000_000, "use 40")
    """Steps of each copy in one turn on one model, rounded up to whole items; 1 to
    1,000,000."""
    step_timeout_s: float = bounded(
        120.0, 0, math.inf, "allow a few times the slowest step", above=True, below=True
    )
    """How long the copies may take for a step or a reset, in seconds, above 0; an actor
    whose environment hangs longer is started again."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def group_sizes(self) -> list[int]:
        """Returns the copies of each group, as even as can be; none is empty."""
        num_groups = min(self.num_groups, self.num_envs)
        return [(self.num_envs + place) // num_groups for place in range(num_groups)][
            ::-1
        ]
