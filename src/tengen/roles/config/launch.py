"""The resources of roles that work concurrently: processes, cores and GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.transport import NetAddress, is_loopback

MOST_SERVERS = 64
"""The maximum number of processes of role inference."""
# The last port for ``listen`` that leaves ports for all services (``roles.doors``).
_LAST_PORT = 65535 - (3 + MOST_SERVERS - 1)


@dataclass(frozen=True, kw_only=True)
class RoleResources:
    """The processes, cores and GPUs of one role."""

    count: int = bounded(1, 1, 1024, "use 1 for each core")
    """Number of processes, 1 to 1024. Only the roles actor, selfplay, learn and
    inference may have more than one process; inference has at most 64."""
    num_cpus: int = bounded(0, 0, 1024, "0 chooses")
    """Cores of each process, 0 to 1024. The process has one thread per core, and a
    cluster reserves the cores. 0 gives the process its share of the cores of its host;
    a cluster reserves this share only for roles that work all the time."""
    num_gpus: int = bounded(0, 0, 64, "leave it out")
    """GPUs that a cluster, or the ranks of mpirun, reserve for each process of the
    role, 0 to 64. On a single machine the roles use the GPUs of --devices, and the
    machine must have as many GPUs as all roles together request."""

    def __post_init__(self) -> None:
        """Checks that all fields are within their ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """The resources of roles that work concurrently; ignored if roles take turns.

    Each role is one process; acting roles, learn and inference may have several. A
    process that dies is restarted.
    """

    roles: dict[str, RoleResources] = field(default_factory=dict)
    """Resources by role, as in ``launch.roles.learn.num_cpus=4``. An omitted role has
    the defaults."""

    address: str = ""
    """``HOST:PORT`` of a Ray cluster's head, or ``auto`` for the cluster of this
    machine. Empty: the address in RAY_ADDRESS, else the cluster of this machine, else a
    new cluster for this call."""
    grows: bool = False
    """Whether the cluster is autoscaling, that is, adds hosts for waiting processes. If
    so, the run waits for capacity for a role instead of failing immediately."""
    wait_minutes: float = bounded(10.0, 0, above=True, rule="must be positive; use 10")
    """Minutes, above 0, that a run waits while the cluster has no capacity for a
    required role, at the run's start or after the loss of a host. After that time the
    run ends with exit code 1 and names the role."""
    runtime_env: str = ""
    """A JSON file with Ray's runtime environment for role processes; empty: none."""
    listen: str = ""
    """``HOST:PORT`` to which roles on machines without the run directory connect. HOST
    is the machine of the learner and of inference. The learner's table listens at PORT;
    inference, the run directory's service, further learners and further inference
    servers use the ports after PORT (``tengen.roles.doors``). Several learners also
    exchange gradients over free ports of HOST, without a certificate. If learners and
    inference servers are on different machines, use ``0.0.0.0:PORT``; each then
    publishes its own host name. An address that other machines can reach needs a
    certificate. Empty: every role has the run directory."""
    certificate_file: str = ""
    """TLS certificate of ``listen``, a PEM file. Clients check it against the SHA-256
    in the run directory."""
    key_file: str = ""
    """The certificate's private key, a PEM file."""

    def __post_init__(self) -> None:
        """Checks the ranges of all fields, and the address in ``listen``.

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
            rule = f"must come with launch.{lacking}; set both or neither"
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
            "accepts other machines, and needs TLS; set launch.certificate_file and "
            "launch.key_file",
        )

    def of(self, role: str) -> RoleResources:
        """Returns the resources of ``role``."""
        return self.roles.get(role, RoleResources())


def _is_reached_by_others(host: str) -> bool:
    """Returns whether ``host`` is a non-loopback IP address; False for host names."""
    try:
        return not is_loopback(host)
    except ValueError:
        return False
