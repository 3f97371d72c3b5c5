"""What each role gets where all roles work at once: processes, cores and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.transport import NetAddress, is_loopback

__all__ = ["MOST_SERVERS", "LaunchConfig", "RoleResources"]

MOST_SERVERS = 64
"""Processes of role inference."""
# Each service needs a port after ``listen``'s; see ``roles.doors``.
_LAST_PORT = 65535 - (3 + MOST_SERVERS - 1)


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """What one role gets."""

    count: int = bounded(1, 1, 1024, "use 1 for each core")
    """Processes of the role, 1 to 1024. Only actor, selfplay, learn and inference may
    have more than one, and inference at most 64."""
    num_cpus: int = bounded(0, 0, 1024, "0 chooses")
    """Cores of each process, 0 to 1024: it has as many threads, and a cluster reserves
    as many cores. 0 gives it its part of the cores of this machine or of the cluster's
    host; a cluster reserves that part for roles that always work."""
    num_gpus: int = bounded(0, 0, 64, "leave it out")
    """GPUs that a cluster, or the ranks of mpirun, reserve for each process of the
    role, 0 to 64. One machine must have as many GPUs as all roles together ask for, and
    the role uses those of --devices."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """What roles get where all work at once; of no effect where roles take turns.

    Each role is one process; acting roles, learn and inference may have several. A
    process that dies is started again.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """Settings by role, as ``launch.roles.learn.num_cpus=4``; a role that is left out
    has the defaults."""

    address: str = ""
    """``HOST:PORT`` of a Ray cluster's head, or ``auto`` for the cluster of this
    machine. Empty: the address in RAY_ADDRESS, else the cluster of this machine, else a
    new cluster for this call."""
    grows: bool = False
    """Whether the cluster adds hosts for waiting processes, as an autoscaling cluster
    does: a role without room now is then waited for instead of refused."""
    wait_minutes: float = bounded(10.0, 0, above=True, rule="10 is usual")
    """Minutes, above 0, for which a run goes on while a role that it needs has no room
    in the cluster, at its start or after a host was lost. Then the run ends with exit
    code 1 and names the role."""
    runtime_env: str = ""
    """A JSON file with Ray's runtime environment for role processes; empty: none."""
    listen: str = ""
    """``HOST:PORT`` that roles on machines without the run directory connect to; HOST
    is the machine of the learner and of inference. The learner's table is at PORT,
    inference at the next port, then the run directory's service, further learners, and
    further inference servers (``tengen.roles.doors``). Several learners also exchange
    gradients over free ports of HOST, without a certificate. Where learners and
    inference servers are on different machines, give ``0.0.0.0:PORT``: each then tells
    its own host name. An address that other machines reach needs a certificate. Empty:
    every role has the run directory."""
    certificate_file: str = ""
    """TLS certificate of ``listen``, a PEM file; actors check it by the SHA-256 in the
    run directory."""
    key_file: str = ""
    """The certificate's private key, a PEM file."""

    def __post_init__(self) -> None:
        """Checks the ranges and the address.

        Raises:
            UsageError: A field is out of its range, the address is not HOST:PORT, or
                too few ports follow its port.
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
            "can be reached by other machines and needs TLS; set "
            "launch.certificate_file and launch.key_file",
        )

    def of(self, role: str) -> RoleResources:
        """Returns what a role is given."""
        return self.roles.get(role, RoleResources())


def _is_reached_by_others(host: str) -> bool:
    """Returns whether an IP address is not loopback; host names are looked up later."""
    try:
        return not is_loopback(host)
    except ValueError:
        return False
