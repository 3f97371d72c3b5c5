"""A store's door to other hosts."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.errors import UsageError, os_reason
from tengen.store.host_protocol import wait_of
from tengen.store.local_backend import LocalBackend
from tengen.store.net_protocol import (
    TOKEN_VARIABLE,
    NetAddress,
    check_hello,
    is_loopback,
    keep_alive,
    token_of,
)
from tengen.store.reception import Reception
from tengen.store.saved_config import read_config
from tengen.store.tls import server_tls

__all__ = ["NetListener", "NetServer"]


class NetListener:
    """An address that a store listens on; nobody is let in before `NetServer` does.

    Args:
        listen: ``HOST:PORT``; port 0 takes a free one.
        token: What clients must know; None: that of the environment, or nothing.
        certificate_file: PEM, for TLS; None: without.
        key_file: PEM, its key.

    Raises:
        UsageError: The address cannot be used, or others than this host would reach it
            without a token and TLS.

    Attributes:
        address: ``tcp://HOST:PORT``, with the port that was taken.
        socket: Bound, and listening.
        token: As clients must know it.
        tls: Takes a connection and the time by which it must be done; None: without.
    """

    def __init__(
        self,
        listen: str,
        token: str | None,
        certificate_file: Path | None,
        key_file: Path | None,
    ) -> None:
        address = NetAddress.parse(listen)
        self.token = token_of(token)
        if (certificate_file is None) != (key_file is None):
            raise UsageError(
                "certificate_file and key_file (one of them) must come together; name "
                "both, or none"
            )
        self.tls = None
        if certificate_file is not None and key_file is not None:
            self.tls = server_tls(certificate_file, key_file)
        try:
            family, _, _, _, where = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )[0]
            if self.token is None or self.tls is None:
                _check_loopback(listen, str(where[0]))
            self.socket = socket.create_server(where[:2], family=family, backlog=128)
        except OSError as error:
            raise UsageError(
                f"listen ({listen}) cannot be used: {os_reason(error)}; choose another "
                f"address"
            ) from error
        self.address = str(NetAddress(address.host, self.socket.getsockname()[1]))

    def close(self) -> None:
        """Listens no more. Idempotent."""
        self.socket.close()


class NetServer:
    """Takes clients in over TCP.

    Args:
        backend: The store.
        listener: Where they come to; closed by ``close``.
    """

    def __init__(self, backend: LocalBackend, listener: NetListener) -> None:
        self._token, self._tls = listener.token, listener.tls
        self._core = _core.ReplayGateway(backend.core)
        backend.add_sessions(lambda: self._core.describe())
        backend.add_replicas(lambda: self._core.replicas())
        self._disk = backend.disk
        self._reception = Reception(
            listener.socket,
            backend,
            ("writer", "sampler", "replica"),
            self._open,
            lambda: len(self._core.describe()),
            self._secure,
            self._check,
            is_encrypted=self._tls is not None,
        )

    def close(self) -> None:
        """Ends every session."""
        self._reception.close()
        del self._core

    def _secure(self, connection: socket.socket, until: float) -> socket.socket:
        keep_alive(connection)
        return connection if self._tls is None else self._tls(connection, until)

    def _check(self, connection: socket.socket, until: float) -> None:
        check_hello(connection, self._token, until)

    def _open(
        self, connection: socket.socket, kind: str, message: Mapping[str, Any]
    ) -> dict[str, Any]:
        descriptor = connection.fileno()
        if kind == "writer":
            next_sequence = self._core.open_writer(
                descriptor, message["name"], message["pool"], wait_of(message)
            )
            return {"next_sequence": next_sequence}
        if kind == "replica":
            if self._disk is None or not self._disk.is_durable:
                raise UsageError(
                    "durability (none) must be checkpoint, async or sync for a "
                    "replica; make the store with it, and with a disk"
                )
            place = message["place"]
            self._core.open_replica(
                descriptor, str(message["name"]), place and tuple(place)
            )
            return read_config(self._disk.directory)
        self._core.open_sampler(
            descriptor, message["table"], message["num_samples"], message["num_ahead"]
        )
        return {}


def _check_loopback(listen: str, host: str) -> None:
    if not is_loopback(host):
        raise UsageError(
            f"listen ({listen}) must be 127.0.0.1 or ::1, or have a token and a "
            f"certificate; set {TOKEN_VARIABLE}, and name certificate_file and key_file"
        )
