"""What roles are given where all of them work at once, a table by role."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.transport import NetAddress, is_loopback

__all__ = ["LaunchConfig", "RoleResources"]


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """What a role is given."""

    count: int = bounded(1, 1, 1024, "use 1 for each core")
    """Processes of the role, 1 to 1024; more than one of the actor and of learn."""
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

    Each role is one process, or several of the actor and of learn, which are started
    again when they die.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """By role, as ``launch.roles.learn.num_cpus=4``; those left out have the
    defaults."""

    listen: str = ""
    """``HOST:PORT`` of the machine of the learner and of inference where actors of
    other machines come in: the learner's table at this port, inference at the next, and
    further learners at the one after it, which then compute together over free ports of
    that address, without a certificate. An address that other machines reach needs one
    for the rest. Empty: actors and learners are on that machine."""
    certificate_file: str = ""
    """PEM, for TLS; actors know it by the SHA-256 in the run directory."""
    key_file: str = ""
    """PEM, the certificate's key."""

    def __post_init__(self) -> None:
        """Checks the address.

        Raises:
            UsageError: It is none, or its port has no next one.
        """
        names = ("certificate_file", "key_file")
        given = [name for name in names if getattr(self, name)]
        if len(given) == 1:
            value = getattr(self, given[0])
            lacking = names[given[0] == names[0]]
            rule = f"must come with launch.{lacking}; set both, or none"
            check(False, given[0], value, rule)
        if not self.listen:
            return
        try:
            address = NetAddress.parse(self.listen)
        except UsageError:
            rule = "must be HOST:PORT; name both, as in 127.0.0.1:7070"
            raise UsageError(f"listen ({self.listen}) {rule}") from None
        check_range("listen, its port", address.port, 1, 65533)
        check(
            given != [] or not _is_reached_by_others(address.host),
            "listen",
            self.listen,
            "is reached by other machines, which needs TLS; set "
            "launch.certificate_file and launch.key_file",
        )

    def of(self, role: str) -> RoleResources:
        """Returns what a role is given."""
        return self.roles.get(role, RoleResources())


def _is_reached_by_others(host: str) -> bool:
    """Returns whether a number is no loopback; names are looked up at the start."""
    try:
        return not is_loopback(host)
    except ValueError:
        return False
