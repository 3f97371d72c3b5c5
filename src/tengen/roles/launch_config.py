"""What roles are given where all of them work at once, a table by role."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.config import check_range

__all__ = ["LaunchConfig", "RoleResources"]

_MAX_COUNT = 1024
_MAX_CPUS = 1024
_MAX_GPUS = 64


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """What a role is given."""

    count: int = 1
    """Processes of the role, 1 to 1024; more than one of the actor alone."""
    num_cpus: int = 0
    """Cores, 0 to 1024: as many threads, and a cluster keeps them for the role. 0 gives
    it its part of this machine's cores, and a cluster keeps none."""
    num_gpus: int = 0
    """GPUs that a cluster keeps for the role, 0 to 64; on one machine the role uses
    those of --devices, and this changes nothing."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_range("count", self.count, 1, _MAX_COUNT, "use 1 for each core")
        check_range("num_cpus", self.num_cpus, 0, _MAX_CPUS, "0 chooses")
        check_range("num_gpus", self.num_gpus, 0, _MAX_GPUS, "leave it out")


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """What roles are given where all work at once; of no effect where they take turns.

    Each role is one process, or several of the actor, which are started again when they
    die.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """By role, as ``launch.roles.learn.num_cpus=4``; those left out have the
    defaults."""

    def of(self, role: str) -> RoleResources:
        """Returns what a role is given."""
        return self.roles.get(role, RoleResources())
