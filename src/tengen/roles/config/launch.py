"""What roles are given where all of them work at once, a table by role."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.transport import NetAddress, is_loopback

__all__ = ["MOST_SERVERS", "LaunchConfig", "RoleResources"]

MOST_SERVERS = 64
"""Processes of role inference."""
# Behind ``listen`` there is one for each service; see ``roles.doors``.
_LAST_PORT = 65535 - (3 + MOST_SERVERS - 1)


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """What a role is given."""

    count: int = bounded(1, 1, 1024, "use 1 for each core")
    """Processes of the role, 1 to 1024; more than one of the actor, of self-play, of
    learn, and of inference, up to 64, alone."""
    num_cpus: int = bounded(0, 0, 1024, "0 chooses")
    """Cores: as many threads, and a cluster keeps them for the role. 0 gives it its
    part of this machine's cores, or of a host's of a cluster, which keeps as many for
    roles that always work."""
    num_gpus: int = bounded(0, 0, 64, "leave it out")
    """GPUs that a cluster, or the ranks of mpirun, keep for each process of the role, 0
    to 64; one machine must have as many as all together, and the role uses those of
    --devices."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """What roles are given where all work at once; of no effect where they take turns.

    Each role is one process, or several of those that act, of learn and of inference,
    which are started again when they die.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """By role, as ``launch.roles.learn.num_cpus=4``; those left out have the
    defaults."""

    address: str = ""
    """``HOST:PORT`` of a Ray cluster's head, or ``auto`` for the one of this machine.
    Empty: that of RAY_ADDRESS, or the one of this machine, or a new one for the
    call."""
    grows: bool = False
    """Whether the cluster adds hosts for what waits, as one that scales itself does:
    what has no room now is then waited for, and not refused."""
    wait_minutes: float = bounded(10.0, 0, above=True, rule="10 is usual")
    """Minutes, above 0, for which a run goes on while a role that it needs has no room
    in the cluster, at its start or once a host was lost; then it ends, exit code 1, and
    names the role."""
    runtime_env: str = ""
    """A JSON file with Ray's runtime environment for role processes; empty: none."""
    listen: str = ""
    """``HOST:PORT`` of the machine of the learner and of inference where roles of
    other machines come in that do not have the run directory: the learner's table at
    this port, inference at the next, then the run directory's service, further
    learners, who then compute together over free ports of that address without a
    certificate, and further servers of inference (``tengen.roles.doors``). Where these
    are on other machines, ``0.0.0.0:PORT``: each tells its own name. An address that
    other machines reach needs a certificate. Empty: every role has the run
    directory."""
    certificate_file: str = ""
    """PEM, for TLS; actors know it by the SHA-256 in the run directory."""
    key_file: str = ""
    """PEM, the certificate's key."""

    def __post_init__(self) -> None:
        """Checks the ranges and the address.

        Raises:
            UsageError: A field is out of its range, or the address is none, or its port
                has too few behind it.
        """
        check_fields(self)
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
        check_range("listen, its port", address.port, 1, _LAST_PORT)
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
