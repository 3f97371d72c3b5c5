"""What roles are given where all of them work at once, a table by role."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.bounds import bounded, check_fields
from tengen.config import check_range
from tengen.transport import NetAddress

__all__ = ["LaunchConfig", "RoleResources"]


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """What a role is given."""

    count: int = bounded(1, 1, 1024, "use 1 for each core")
    """Processes of the role, 1 to 1024; more than one of the actor alone."""
    num_cpus: int = bounded(0, 0, 1024, "0 chooses")
    """Cores: as many threads, and a cluster keeps them for the role. 0 gives
    it its part of this machine's cores, and a cluster keeps none."""
    num_gpus: int = bounded(0, 0, 64, "leave it out")
    """GPUs that a cluster keeps for the role, 0 to 64; on one machine the role uses
    those of --devices, and this changes nothing."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """What roles are given where all work at once; of no effect where they take turns.

    Each role is one process, or several of the actor, which are started again when they
    die.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """By role, as ``launch.roles.learn.num_cpus=4``; those left out have the
    defaults."""

    listen: str = ""
    """``HOST:PORT`` of the machine of the learner and of inference where actors of
    other machines come in: the learner's table at this port, inference at the next. An
    address that other machines reach needs a certificate. Empty: actors are on that
    machine."""
    certificate_file: str = ""
    """PEM, for TLS; actors know it by the SHA-256 in the run directory."""
    key_file: str = ""
    """PEM, the certificate's key."""

    def __post_init__(self) -> None:
        """Checks the address.

        Raises:
            UsageError: It is none, or its port has no next one.
        """
        if self.listen:
            port = NetAddress.parse(self.listen).port
            check_range("port of launch.listen", port, 1, 65534)

    def of(self, role: str) -> RoleResources:
        """Returns what a role is given."""
        return self.roles.get(role, RoleResources())
