"""Sockets that a server listens on: in a folder of this host, or on an address."""

from __future__ import annotations

import hmac
import socket
from dataclasses import dataclass
from pathlib import Path

from tengen.errors import UsageError, os_reason
from tengen.transport.address import NetAddress, is_loopback, keep_alive
from tengen.transport.lines import read_line
from tengen.transport.owned import OwnedSocket
from tengen.transport.service import Dialect
from tengen.transport.tls import Tls, server_tls

__all__ = ["Listener", "NetDoor"]

_MAX_HELLO_BYTES = 4096


@dataclass(frozen=True)
class Listener:
    """A bound socket; nobody is answered before a `Server` has it.

    Attributes:
        bound: The socket: over TCP, or of this host.
        address: ``tcp://HOST:PORT`` with the port that was taken, or the folder.
        token: What clients over TCP must know; None: nothing.
        tls: Encrypts connections over TCP; None: they are not encrypted.
    """

    bound: socket.socket
    address: str
    token: str | None = None
    tls: Tls | None = None

    def secure(self, connection: socket.socket, until: float) -> socket.socket:
        """Returns the socket to speak on with a client that has connected."""
        if self.bound.family != socket.AF_UNIX:
            keep_alive(connection)
        return connection if self.tls is None else self.tls(connection, until)

    def check(self, connection: socket.socket, dialect: Dialect, until: float) -> None:
        """Lets a client greet; raises UsageError for one that may not ask."""
        # The folder of a socket of this host lets its own user in alone.
        if self.bound.family != socket.AF_UNIX:
            check_hello(connection, dialect, self.token, until)

    def close(self) -> None:
        """Listens no more. Idempotent."""
        self.bound.close()


@dataclass(frozen=True, kw_only=True)
class NetDoor:
    """Where a service lets clients of other hosts in.

    Attributes:
        listen: ``HOST:PORT``; port 0 takes a free one.
        token: What clients must know; None: that of the environment, or nothing.
        certificate_file: PEM, for TLS; None: without.
        key_file: PEM, its key.
    """

    listen: str
    token: str | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def open(self, dialect: Dialect) -> Listener:
        """Takes the address.

        Args:
            dialect: The service's.

        Raises:
            UsageError: The address cannot be used, or others than this host would reach
                it without a token and TLS.
        """
        address = NetAddress.parse(self.listen)
        token = dialect.token(self.token)
        if (self.certificate_file is None) != (self.key_file is None):
            raise UsageError(
                "certificate_file and key_file (one of them) must come together; name "
                "both, or none"
            )
        tls = None
        if self.certificate_file is not None and self.key_file is not None:
            tls = server_tls(dialect.name, self.certificate_file, self.key_file)
        try:
            family, _, _, _, where = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )[0]
            if (token is None or tls is None) and not is_loopback(str(where[0])):
                lacks = ["name certificate_file and key_file"] if tls is None else []
                if token is None:
                    lacks.insert(0, f"set {dialect.token_variable}")
                raise UsageError(
                    f"listen ({self.listen}) must be 127.0.0.1 or ::1, or have a token "
                    f"and a certificate; {', and '.join(lacks)}"
                )
            bound = socket.create_server(where[:2], family=family, backlog=128)
        except OSError as error:
            raise UsageError(
                f"listen ({self.listen}) cannot be used: {os_reason(error)}; choose "
                f"another address"
            ) from error
        taken = str(NetAddress(address.host, bound.getsockname()[1]))
        return Listener(OwnedSocket.of(bound), taken, token, tls)


def check_hello(
    connection: socket.socket, dialect: Dialect, token: str | None, until: float
) -> None:
    """Reads the first line of a client over TCP: its dialect, and the token it knows.

    Raises:
        UsageError: The client has another dialect, or does not know the token.
        OSError: The connection broke, or the line was not whole in time.
    """
    hello = read_line(connection, until, _MAX_HELLO_BYTES)
    if hello is None:
        raise ConnectionResetError
    dialect.check(hello)
    # Of any characters: JSON may have halves of those that UTF-16 makes of two.
    given = str(hello.get("token", "")).encode(errors="surrogatepass")
    if token is not None and not hmac.compare_digest(given, token.encode()):
        raise UsageError(
            f"token (not shown) must be the {dialect.name}'s; pass it by token or by "
            f"the environment's {dialect.token_variable}"
        )
