"""Sockets that a server listens on, in a folder of this host or on the network."""

from __future__ import annotations

import hashlib
import hmac
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tengen.errors import UsageError, os_reason
from tengen.transport.address import NetAddress, is_loopback, keep_alive
from tengen.transport.lines import read_line
from tengen.transport.owned import OwnedSocket
from tengen.transport.service import Dialect

if TYPE_CHECKING:
    from tengen.transport.tls import Tls

_MAX_HELLO_BYTES = 4096


@dataclass(frozen=True)
class Listener:
    """A bound socket, on which a `Server` starts to listen.

    Attributes:
        bound: The socket, for TCP or in a folder.
        address: ``tcp://HOST:PORT`` with the actual port, or the path of the folder.
        token: The token required of clients over TCP; None if no token is required.
        tls: Encrypts TCP connections; None for unencrypted connections.
    """

    bound: socket.socket
    address: str
    token: str | None = None
    tls: Tls | None = None

    def secure(self, connection: socket.socket, until: float) -> socket.socket:
        """Sets up keep-alive and TLS for ``connection``; returns the socket to use."""
        if self.bound.family != socket.AF_UNIX:
            keep_alive(connection)
        return connection if self.tls is None else self.tls(connection, until)

    def check(self, connection: socket.socket, dialect: Dialect, until: float) -> None:
        """Checks the client's greeting over TCP; see `check_hello`."""
        # A socket in a folder needs no check, because only its own user has access.
        if self.bound.family != socket.AF_UNIX:
            check_hello(connection, dialect, self.token, until)

    def close(self) -> None:
        """Closes the socket. Idempotent."""
        self.bound.close()


@dataclass(frozen=True, kw_only=True)
class NetDoor:
    """Options of a service that is reachable over the network.

    Attributes:
        listen: ``HOST:PORT``; port 0 selects a free port.
        token: The token required of clients; None: the environment's token, if any.
        certificate_file: The PEM file of the certificate for TLS; None for no TLS.
        key_file: The PEM file of the certificate's private key.
    """

    listen: str
    token: str | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def open(self, dialect: Dialect) -> Listener:
        """Binds a socket to ``listen``; returns its listener.

        Args:
            dialect: The service's dialect.

        Raises:
            UsageError: The address or certificate cannot be used, or the address is not
                a loopback address and there is no token or no TLS.
        """
        address = NetAddress.parse(self.listen)
        token = dialect.token(self.token)
        if (self.certificate_file is None) != (self.key_file is None):
            raise UsageError(
                "certificate_file and key_file (one of them) must be set together; set "
                "both or neither"
            )
        tls = None
        if self.certificate_file is not None and self.key_file is not None:
            # Imported here, because few runs need TLS and importing ssl takes long.
            from tengen.transport.tls import server_tls

            tls = server_tls(dialect.name, self.certificate_file, self.key_file)
        try:
            family, _, _, _, where = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM
            )[0]
            if (token is None or tls is None) and not is_loopback(str(where[0])):
                lacks = ["set certificate_file and key_file"] if tls is None else []
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
    """Reads and checks a TCP client's first line, with its dialect and token.

    Raises:
        UsageError: The dialect differs, or the token is wrong.
        OSError: The connection is broken, or the line was incomplete at ``until``.
    """
    hello = read_line(connection, until, _MAX_HELLO_BYTES)
    if hello is None:
        raise ConnectionResetError
    dialect.check(hello)
    # JSON strings may contain lone surrogates, which strict encoding would reject.
    given = str(hello.get("token", "")).encode(errors="surrogatepass")
    if token is not None and not hmac.compare_digest(given, token.encode()):
        raise UsageError(
            f"token (not shown) must be that of the {dialect.name}; pass token, or set "
            f"the environment variable {dialect.token_variable}"
        )


def fingerprint_of(certificate_file: Path) -> str:
    """Returns the SHA-256 in hex of the first certificate in a PEM file.

    Raises:
        UsageError: The file cannot be read or has no certificate.
    """
    import ssl  # see ``NetDoor.open``

    end = "-----END CERTIFICATE-----"
    try:
        text, found, _ = certificate_file.read_text().partition(end)
        certificate = ssl.PEM_cert_to_DER_cert(
            text[text.index("-----BEGIN CERTIFICATE-----") :] + found
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"certificate_file ({certificate_file}) cannot be used, {error}; give a "
            "PEM file"
        ) from error
    return hashlib.sha256(certificate).hexdigest()
