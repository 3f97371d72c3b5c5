"""Where the services of a run let actors in, and how an actor reaches them."""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass
from pathlib import Path

from tengen.errors import UsageError
from tengen.mirror import RUN
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
    "Way",
    "check_doors",
    "connect_to",
    "port_offset",
    "server_name",
    "way_to",
]

STORE = "store"
"""The name of the experience among a run's services."""
INFERENCE = "inference"
"""That of role inference; of the further ones see ``server_name``."""
RUN_SERVICE = "run"
"""That of the run directory itself, for roles of hosts without it."""
LEARNERS = "learners"
"""That of the leading learner, for those that follow it."""

TOKEN_VARIABLE = "TENGEN_RUN_TOKEN"
"""What an actor that is told an address takes the token from."""
_PORTS = {STORE: 0, INFERENCE: 1, RUN_SERVICE: 2, LEARNERS: 3}
"""By which each service's port is above the one that launch.listen names."""
_FIRST_FURTHER = 3
"""Further inference servers come behind: server I is at ``launch.listen``'s port + 3 +
I."""
ANYWHERE = ("0.0.0.0", "::")
"""What ``launch.listen`` says for every address of its host."""


def server_name(index: int) -> str:
    """Returns the name of an inference server among a run's services.

    Args:
        index: Which of them, from 0.
    """
    return f"{INFERENCE}-{index}" if index else INFERENCE


def port_offset(name: str) -> int:
    """Returns by how much a service's port is above the one of ``launch.listen``.

    Args:
        name: As for ``Doors``.
    """
    if name in _PORTS:
        return _PORTS[name]
    return _FIRST_FURTHER + int(name.removeprefix(f"{INFERENCE}-"))


def _moved(address: NetAddress, name: str) -> NetAddress:
    """Returns where a service is, of the address in ``launch.listen``."""
    return NetAddress(address.host, address.port + port_offset(name))


class Doors:
    """Where one service is let into.

    Args:
        config: Says whether other hosts come in.
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS``, or of ``server_name``.

    Attributes:
        folder: For this host.
        net: For other hosts; None: they do not come in.
    """

    def __init__(self, config: LaunchConfig, run: RunDirectory, name: str) -> None:
        self._config = config
        self._run = run
        self._name = name
        self.folder = service_folder(run, name)
        self.net: NetDoor | None = None
        if config.listen:
            pem, key = config.certificate_file, config.key_file
            self.net = NetDoor(
                listen=str(_moved(NetAddress.parse(config.listen), name)),
                token=run_token(run),
                certificate_file=Path(pem) if pem else None,
                key_file=Path(key) if key else None,
            )

    def publish(self) -> None:
        """Tells the run's actors; the doors are open.

        Raises:
            RunError: The disk refuses.
        """
        address = fingerprint = ""
        if self.net is not None:
            address = str(_named(NetAddress.parse(self.net.listen)))
            if self.net.certificate_file is not None:
                fingerprint = fingerprint_of(self.net.certificate_file)
        write_endpoint(self._run, self._name, address, fingerprint)


def check_doors(config: RunConfig) -> None:
    """Makes sure that roles of this host can let others in at ``launch.listen``.

    Every door is opened for a moment: its name is looked up, its port taken, and the
    certificate read.

    Args:
        config: The run's; without ``launch.listen`` there is nothing to look at.

    Raises:
        UsageError: A door cannot be opened; the message names its port and whose it is.
    """
    launch = config.launch
    if not launch.listen:
        return
    for name in _services(config):
        pem, key = launch.certificate_file, launch.key_file
        door = NetDoor(
            listen=str(_moved(NetAddress.parse(launch.listen), name)),
            # The run's own need not be there yet.
            token=secrets.token_hex(),
            certificate_file=Path(pem) if pem else None,
            key_file=Path(key) if key else None,
        )
        try:
            door.open(RUN).close()
        except UsageError as error:
            raise UsageError(
                f"launch.listen ({launch.listen}) cannot let others in to {name}, "
                f"{error}"
            ) from None


def _services(config: RunConfig) -> list[str]:
    """Returns what a run serves to other hosts where all its roles work at once."""
    schedule = config.agent.schedule(config)
    services = [STORE] if schedule.is_shared else []
    if schedule.serving:
        count = config.launch.of(schedule.serving).count
        services += [server_name(index) for index in range(count)]
    if config.launch.of("learn").count > 1:
        services.append(LEARNERS)
    return [*services, RUN_SERVICE]


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a service is reached."""

    address: str
    """A folder of this host, or ``tcp://HOST:PORT``."""
    token: str | None = None
    """What the service wants to be told; None where it asks for nothing."""
    fingerprint: str | None = None
    """Of its certificate; None where it has none."""


@dataclass(frozen=True, kw_only=True)
class Connect:
    """An address that an actor was told, in place of what the run directory says."""

    address: str
    """``HOST:PORT``, as ``launch.listen`` of the other roles has it."""
    fingerprint: str | None = None
    """SHA-256 in hex of their certificate; None where they have none."""


def connect_to(config: LaunchConfig) -> Connect | None:
    """Returns where roles of other hosts find this run; None: nothing listens.

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
    """Returns the address by which other hosts reach what listens there."""
    host = platform.node() if address.host in ANYWHERE else address.host
    return NetAddress(host, address.port)


def way_to(run: RunDirectory, name: str, connect: Connect | None) -> Way:
    """Returns how this process reaches a service now.

    Args:
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS``, or of ``server_name``.
        connect: What the user typed; None: the run directory says it.

    Raises:
        RunError: The service never ran, or is for another host alone.
        UsageError: An address was typed, and no token is in the environment.
    """
    if connect is not None:
        address = _moved(NetAddress.parse(connect.address), name)
        token = os.environ.get(TOKEN_VARIABLE)
        if token is None:
            raise UsageError(
                f"token ({TOKEN_VARIABLE}, not set) must be the run's; set it to what "
                f"endpoints/token of the learner's run holds"
            )
        return Way(address=str(address), token=token, fingerprint=connect.fingerprint)
    endpoint = read_endpoint(run, name)
    return Way(
        address=endpoint.reached(name),
        token=run_token(run),
        fingerprint=endpoint.fingerprint or None,
    )
