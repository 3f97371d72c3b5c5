"""Where the services of a run listen, and how roles reach them."""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from tengen.errors import UsageError
from tengen.remote import RUN
from tengen.roles.config import RunConfig
from tengen.roles.config.launch import LaunchConfig
from tengen.run import (
    RunDirectory,
    read_endpoint,
    run_token,
    service_folder,
    write_endpoint,
)
from tengen.transport import NetAddress, NetDoor, fingerprint_of

__all__ = [
    "ANYWHERE",
    "INFERENCE",
    "LEARNERS",
    "RUN_SERVICE",
    "STORE",
    "TOKEN_VARIABLE",
    "Connect",
    "Doors",
    "check_doors",
    "connect_to",
    "port_offset",
    "server_name",
    "way_to",
]

STORE = "store"
"""The name of the experience among a run's services."""
INFERENCE = "inference"
"""The name of role inference; for further servers see ``server_name``."""
RUN_SERVICE = "run"
"""The name of the run directory's own service, for roles on hosts without it."""
LEARNERS = "learners"
"""The name of the leading learner's service, for the learners that follow it."""

TOKEN_VARIABLE = "TENGEN_RUN_TOKEN"
"""The variable that holds the token of a role with ``--connect``."""
_PORTS = {STORE: 0, INFERENCE: 1, RUN_SERVICE: 2, LEARNERS: 3}
"""By how much each service's port is above the port of ``launch.listen``."""
_FIRST_FURTHER = 3
"""Further inference servers follow: server I is at the port of ``launch.listen`` + 3 +
I."""
ANYWHERE = ("0.0.0.0", "::")
"""The hosts in ``launch.listen`` that stand for every address of a machine."""


def server_name(index: int) -> str:
    """Returns the name of an inference server among a run's services.

    Args:
        index: Which server, from 0.
    """
    return f"{INFERENCE}-{index}" if index else INFERENCE


def port_offset(name: str) -> int:
    """Returns by how much a service's port is above that of ``launch.listen``.

    Args:
        name: As for ``Doors``.
    """
    if name in _PORTS:
        return _PORTS[name]
    return _FIRST_FURTHER + int(name.removeprefix(f"{INFERENCE}-"))


def _moved(address: NetAddress, name: str) -> NetAddress:
    """Returns a service's address, from the address in ``launch.listen``."""
    return NetAddress(address.host, address.port + port_offset(name))


class Doors:
    """The addresses at which one service listens.

    Args:
        config: Says whether other hosts may connect.
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS`` or a ``server_name``.

    Attributes:
        folder: The folder for processes of this host.
        net: The address for other hosts; None: they may not connect.
    """

    def __init__(self, config: LaunchConfig, run: RunDirectory, name: str) -> None:
        self._config = config
        self._run = run
        self._name = name
        self.folder = service_folder(run, name)
        self.net = _door(config, name, run_token(run)) if config.listen else None

    def publish(self) -> None:
        """Tells the run's roles that the service listens.

        Raises:
            RunError: Writing to the disk failed.
        """
        address = fingerprint = ""
        if self.net is not None:
            address = str(_named(NetAddress.parse(self.net.listen)))
            if self.net.certificate_file is not None:
                fingerprint = fingerprint_of(self.net.certificate_file)
        write_endpoint(self._run, self._name, address, fingerprint)


def check_doors(config: RunConfig) -> None:
    """Makes sure that this host can listen at the addresses of ``launch.listen``.

    Listens at every address for a moment: looks up the host name, takes the port, and
    reads the certificate.

    Args:
        config: The run's config; without ``launch.listen`` there is nothing to check.

    Raises:
        UsageError: An address cannot be used; the message names the port and the
            service.
    """
    launch = config.launch
    if not launch.listen:
        return
    for name in _services(config):
        # The run's own token may not exist yet.
        door = _door(launch, name, secrets.token_hex())
        try:
            door.open(RUN).close()
        except UsageError as error:
            raise UsageError(
                f"launch.listen ({launch.listen}) cannot be opened for {name}, {error}"
            ) from None


def _door(config: LaunchConfig, name: str, token: str) -> NetDoor:
    """Returns where a service listens for other hosts."""
    pem, key = config.certificate_file, config.key_file
    return NetDoor(
        listen=str(_moved(NetAddress.parse(config.listen), name)),
        token=token,
        certificate_file=Path(pem) if pem else None,
        key_file=Path(key) if key else None,
    )


def _services(config: RunConfig) -> list[str]:
    """Returns the services for other hosts of a run whose roles all work at once."""
    schedule = config.schedule
    services = [STORE] if schedule.is_shared else []
    if schedule.serving:
        count = config.launch.of(schedule.serving).count
        services += [server_name(index) for index in range(count)]
    if config.launch.of("learn").count > 1:
        services.append(LEARNERS)
    return [*services, RUN_SERVICE]


@dataclass(frozen=True, kw_only=True)
class Connect:
    """How a service, or a run's first service, is reached."""

    address: str
    """A folder of this host or ``tcp://HOST:PORT``; of a run that a role was told to
    join ``HOST:PORT``, as in its ``launch.listen``."""
    fingerprint: str | None = None
    """SHA-256 of the run's certificate in hex; None if it has none."""
    token: str | None = field(default=None, repr=False)
    """The run's token; None: that of the variable ``TOKEN_VARIABLE``."""


def connect_to(config: LaunchConfig) -> Connect | None:
    """Returns where roles on other hosts find this run; None: nothing listens.

    The token is ``run_token``.

    Raises:
        UsageError: The certificate cannot be read.
    """
    if not config.listen:
        return None
    address = _named(NetAddress.parse(config.listen))
    pem = config.certificate_file
    return Connect(
        address=str(address).removeprefix("tcp://"),
        fingerprint=fingerprint_of(Path(pem)) if pem else None,
    )


def _named(address: NetAddress) -> NetAddress:
    """Returns the address by which other hosts reach a listening address."""
    host = platform.node() if address.host in ANYWHERE else address.host
    return NetAddress(host, address.port)


def way_to(run: RunDirectory, name: str, connect: Connect | None) -> Connect:
    """Returns how this process reaches a service now.

    Args:
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS`` or a ``server_name``.
        connect: The address that the user typed; None: the run directory's.

    Raises:
        RunError: The service never ran, or serves only another host.
        UsageError: An address was typed, and the environment has no token.
    """
    if connect is not None:
        address = _moved(NetAddress.parse(connect.address), name)
        token = connect.token or os.environ.get(TOKEN_VARIABLE)
        if token is None:
            raise UsageError(
                f"token ({TOKEN_VARIABLE}, not set) must be the run's; set it to the "
                "content of endpoints/token in the learner's run"
            )
        return Connect(
            address=str(address), token=token, fingerprint=connect.fingerprint
        )
    endpoint = read_endpoint(run, name)
    return Connect(
        address=endpoint.reached(name),
        token=run_token(run),
        fingerprint=endpoint.fingerprint or None,
    )
