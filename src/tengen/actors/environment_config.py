"""The settings of an actor of environments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tengen.bounds import bounded, check_fields

__all__ = ["EnvironmentActorConfig"]


@dataclass(frozen=True, kw_only=True)
class EnvironmentActorConfig:
    """How many copies of an environment an actor steps, and how long on one model."""

    num_envs: int = bounded(16, 1, 4096, "8 to 64 suits a CPU")
    """Number of copies of the environment that an actor steps together, 1 to 4096. Each
    copy is a row of the inference batch: more copies make larger batches."""
    num_groups: int = bounded(2, 1, 8, "use 2")
    """Number of groups that an actor divides its copies into, 1 to 8, where inference
    is in another process: one group is stepped while another waits for answers."""
    turn_steps: int = bounded(40, 1, 1_000_000, "use 40")
    """Steps of each copy in one turn, all by one model, 1 to 1,000,000; rounded up to
    whole items."""
    step_timeout_s: float = bounded(
        120.0, 0, math.inf, "allow a few times the slowest step", above=True, below=True
    )
    """Seconds that a step or a reset of the copies may take, above 0. An actor whose
    environment takes longer is started again."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def group_sizes(self) -> list[int]:
        """Returns the copies in each group, as even as possible; no group is empty."""
        num_groups = min(self.num_groups, self.num_envs)
        return [(self.num_envs + place) // num_groups for place in range(num_groups)][
            ::-1
        ]
