"""The addresses at which a run's services listen, and how roles reach the services.

A role on a host without the run directory has the option ``--connect``, and works on a
mirror.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import platform
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tengen.errors import UsageError
from tengen.remote import RUN, Mirror
from tengen.roles.config import RunConfig
from tengen.roles.config.launch import LaunchConfig
from tengen.run import (
    RunDirectory,
    read_endpoint,
    run_token,
    service_folder,
    write_endpoint,
)
from tengen.transport import (
    Client,
    HostFolder,
    NetAddress,
    NetDoor,
    Server,
    Service,
    fingerprint_of,
)

STORE = "store"
"""Service name of the learner's table."""
INFERENCE = "inference"
"""Service name of the first inference server; see ``server_name`` for the others."""
RUN_SERVICE = "run"
"""Service name of the service with the run's files, for roles on other hosts."""
LEARNERS = "learners"
"""Service name of the leading learner, for its followers."""

TOKEN_VARIABLE = "TENGEN_RUN_TOKEN"
"""The environment variable with the run's token, for roles with ``--connect``. A role
removes the variable when it starts, so that processes of environments do not get it."""
_PORTS = {STORE: 0, INFERENCE: 1, RUN_SERVICE: 2, LEARNERS: 3}
"""Each service's port, relative to the port of ``launch.listen``."""
_PATIENCE_S = 10.0
_FIRST_FURTHER = 3
"""Inference server I >= 1 listens at the port of ``launch.listen`` plus 3 + I."""
ANYWHERE = ("0.0.0.0", "::")
"""Hosts in ``launch.listen`` that make a service listen on all network interfaces."""


def server_name(index: int) -> str:
    """Returns the service name of an inference server.

    Args:
        index: Index of the server, from 0.
    """
    return f"{INFERENCE}-{index}" if index else INFERENCE


def port_offset(name: str) -> int:
    """Returns a service's port, relative to the port of ``launch.listen``.

    Args:
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS`` or a ``server_name``.
    """
    if name in _PORTS:
        return _PORTS[name]
    return _FIRST_FURTHER + int(name.removeprefix(f"{INFERENCE}-"))


def _moved(address: NetAddress, name: str) -> NetAddress:
    """Returns the address of service ``name``; ``address`` is ``launch.listen``."""
    return NetAddress(address.host, address.port + port_offset(name))


class Doors:
    """The addresses at which one service listens.

    Args:
        config: Its ``listen`` decides whether other hosts can connect.
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS`` or a ``server_name``.

    Attributes:
        folder: The folder at which processes of this host connect.
        net: The address at which other hosts connect; None: they cannot.
    """

    def __init__(self, config: LaunchConfig, run: RunDirectory, name: str) -> None:
        self._config = config
        self._run = run
        self._name = name
        self.folder = service_folder(run, name)
        self.net = _door(config, name, run_token(run)) if config.listen else None
        self._opened: HostFolder | None = None
        self._servers: list[Server] = []

    def open(self, service: Service) -> None:
        """Starts servers in the folder and at the address, and publishes the endpoint.

        Raises:
            UsageError: The address cannot be used, or another process has the folder.
            RunError: Writing to the disk failed.
        """
        # Listen first, so that nothing needs to be removed if the address is unusable.
        listeners = [] if self.net is None else [self.net.open(service.dialect)]
        try:
            self._opened = HostFolder(self._name, self.folder)
            listeners.append(self._opened.listen())
            self._servers = [Server(one, service) for one in listeners]
            self.publish()
        except BaseException:
            for listener in listeners:
                listener.close()
            self.close()
            raise

    def close(self) -> None:
        """Ends the servers that ``open`` started. Idempotent."""
        for server in self._servers:
            server.close()
        if self._opened is not None:
            self._opened.remove()

    def publish(self) -> None:
        """Publishes the service's endpoint file, with which the run's roles connect.

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
    """Checks that this host can listen at the addresses of ``launch.listen``.

    Listens briefly at every address, which resolves the host name, binds the port and
    reads the certificate.

    Args:
        config: The run's config; without ``launch.listen`` there is nothing to check.

    Raises:
        UsageError: An address cannot be used; the message names the port and service.
    """
    launch = config.launch
    if not launch.listen:
        return
    for name in _services(config):
        # A random token, because the run's token may not exist yet.
        door = _door(launch, name, secrets.token_hex())
        try:
            door.open(RUN).close()
        except UsageError as error:
            raise UsageError(
                f"launch.listen ({launch.listen}) cannot be used for {name}, {error}"
            ) from None


def _door(config: LaunchConfig, name: str, token: str) -> NetDoor:
    """Returns the network address, token and certificate of service ``name``."""
    pem, key = config.certificate_file, config.key_file
    return NetDoor(
        listen=str(_moved(NetAddress.parse(config.listen), name)),
        token=token,
        certificate_file=Path(pem) if pem else None,
        key_file=Path(key) if key else None,
    )


def _services(config: RunConfig) -> list[str]:
    """Returns the names of the services that a concurrent run offers to other hosts."""
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
    """The address and credentials for a connection to a service, or to a run."""

    address: str
    """For a service, a folder of this host or ``tcp://HOST:PORT``. For a run, the
    ``HOST:PORT`` of its ``launch.listen``."""
    fingerprint: str | None = None
    """SHA-256 of the run's certificate in hex; None if it has no certificate."""
    token: str | None = field(default=None, repr=False)
    """The run's token."""

    @property
    def credentials(self) -> dict[str, Any]:
        """The arguments ``token`` and ``fingerprint`` of a client of the service."""
        return {"token": self.token, "fingerprint": self.fingerprint}


def connect_to(config: LaunchConfig) -> Connect | None:
    """Returns this run's address for roles on other hosts; None without ``listen``.

    The result has no token; ``run_token`` returns the run's token.

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
    """Returns ``address`` with this host's name if its host is one of ``ANYWHERE``."""
    host = platform.node() if address.host in ANYWHERE else address.host
    return NetAddress(host, address.port)


def way_to(run: RunDirectory, name: str, connect: Connect | None) -> Connect:
    """Returns the address and credentials with which this process reaches a service.

    Args:
        run: The run.
        name: ``STORE``, ``RUN_SERVICE``, ``LEARNERS`` or a ``server_name``.
        connect: The run's address, if the role was given one, for example with
            ``--connect``; None: read the endpoint file.

    Raises:
        RunError: The service never ran, or is available only on another host.
        UsageError: ``connect`` has no token.
    """
    if connect is not None:
        address = _moved(NetAddress.parse(connect.address), name)
        if connect.token is None:
            raise UsageError(
                f"token ({TOKEN_VARIABLE}, not set) must be set; set it to the content "
                "of endpoints/token in the learner's run"
            )
        return dataclasses.replace(connect, address=str(address))
    endpoint = read_endpoint(run, name)
    return Connect(
        address=endpoint.reached(name),
        token=run_token(run),
        fingerprint=endpoint.fingerprint or None,
    )


def add_connect_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares ``--connect`` and ``--fingerprint``."""
    parser.add_argument(
        "--connect",
        metavar="HOST:PORT",
        help="join a run on another host, at the address in its launch.listen; RUN is "
        f"then a local folder for the role's files, and the variable {TOKEN_VARIABLE} "
        "must contain the token",
    )
    parser.add_argument(
        "--fingerprint", help="with --connect, the SHA-256 of the run's certificate"
    )


def connect_of(args: argparse.Namespace) -> Connect | None:
    """Returns the address given with ``--connect`` and the run's token, or None.

    Removes the token from the environment of this process, so that processes started by
    an environment do not inherit it.

    Raises:
        UsageError: The address is not HOST:PORT, or its host cannot be resolved.
    """
    token = os.environ.pop(TOKEN_VARIABLE, None)
    if args.connect is None:
        if args.fingerprint is not None:
            raise UsageError(
                f"fingerprint ({args.fingerprint}) must come with --connect; give both"
            )
        return None
    address = NetAddress.parse(args.connect)
    try:
        socket.getaddrinfo(address.host, address.port)
    except OSError as error:
        raise UsageError(
            f"connect ({args.connect}) must name a known host: "
            f"{error.strerror or error}; correct it"
        ) from None
    return Connect(address=args.connect, fingerprint=args.fingerprint, token=token)


@contextlib.contextmanager
def mirrored(
    path: Path,
    connect: Connect | None,
    role: str,
    index: int | None,
    stop: threading.Event,
    say: Callable[[str], None],
    *,
    is_vouched: bool = False,
) -> Iterator[Mirror | None]:
    """Opens a mirror at ``path`` for the context; yields None if ``connect`` is None.

    Args:
        path: The mirror's folder.
        connect: The run's address; None: the run is at ``path`` itself.
        role: The role that works on the mirror.
        index: Index of the actor or number of the writer; None: any free writer.
        stop: Ends the wait for the run's host.
        say: Called with a line of text for the user.
        is_vouched: Whether a runner started this process as the only one of its index.

    Raises:
        UsageError: ``connect`` has no token; for others see ``Mirror.open``.
        RunError: The host does not answer, or writing failed.
    """
    if connect is None:
        yield None
        return
    way = way_to(RunDirectory(path), RUN_SERVICE, connect)
    client = Client(RUN, way.address, patience_s=_PATIENCE_S, **way.credentials)
    mirror = Mirror(
        path, client, role, index, stop=stop, say=say, is_vouched=is_vouched
    )
    mirror.open()
    try:
        yield mirror
    finally:
        mirror.close()
