"""The client of a service, which sends requests and opens sessions."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Any

from tengen.config import check_range
from tengen.errors import UsageError
from tengen.transport.address import NetAddress, is_loopback, is_net, keep_alive
from tengen.transport.folder import SOCKET_NAME, check_own_folder
from tengen.transport.lines import NoAnswer, answer_of, read_line, send_line
from tengen.transport.owned import OwnedSocket
from tengen.transport.service import Dialect, Message

# Maximum size of a response. Larger than the limit on requests: clients trust servers.
_MAX_ANSWER_BYTES = 64 << 20
# Minimum wait for a response in seconds, for a busy server, even if a timeout is lower.
_LEAST_ANSWER_S = 2.0
_CONNECT_S = 10.0
_RETRY_S = 0.05


class Client:
    """Sends requests to a service of another process, each on its own connection.

    Thread-safe. The client connects only when a request is sent.

    Args:
        dialect: The service's dialect.
        address: The folder of a server on this host, or ``tcp://HOST:PORT``.
        patience_s: Time limit for a response in seconds, 0 or more; less than 2 counts
            as 2. For a folder, also the time limit for a new server to replace a killed
            server.
        token: The token for ``tcp``; None reads the token from the environment.
        ca_file: For ``tcp`` with TLS, the PEM file of the certificate authority.
        fingerprint: For ``tcp`` with TLS, instead of ``ca_file``: the SHA-256 of the
            server's certificate in hex.

    Raises:
        UsageError: The address or an option is invalid.

    Attributes:
        name: The address, for error messages.
    """

    def __init__(
        self,
        dialect: Dialect,
        address: str | os.PathLike[str],
        *,
        patience_s: float = 30.0,
        token: str | None = None,
        ca_file: Path | None = None,
        fingerprint: str | None = None,
    ) -> None:
        check_range("patience_s", patience_s, 0, 1e9)
        self._dialect = dialect
        self._patience_s = patience_s
        self._is_closed = False
        self._folder: Path | None = None
        self._tls = None
        if is_net(address):
            self._address = NetAddress.parse(str(address))
            self._token = dialect.token(token)
            if ca_file is not None or fingerprint is not None:
                from tengen.transport.tls import client_tls  # see NetDoor.open

                self._tls = client_tls(
                    dialect.name, self._address.host, ca_file, fingerprint
                )
            self.name = str(self._address)
        else:
            # Resolve links, because only the target's path may fit a socket address.
            self._folder = Path(address).resolve()
            self.name = str(self._folder)

    def ask(self, message: Message, timeout_s: float | None = None) -> Any:
        """Sends a request and returns the response.

        Args:
            message: The request; its key ``ask`` is the kind of request. A key
                ``wait_s`` adds the server's own wait to the time limit.
            timeout_s: A lower time limit than ``patience_s`` in seconds, or None.

        Raises:
            NoAnswer: The server does not respond, or has too many clients.
            RunError: The service has failed or is closing.
            UsageError: The service rejected the request, or the client is closed.
            CoreError: The service's core raised an error.
        """
        connection, answer = self.open(message, timeout_s)
        connection.close()
        return answer

    def open(
        self, message: Message, timeout_s: float | None = None
    ) -> tuple[socket.socket, Any]:
        """Sends a request that opens a session; see `ask` for arguments and errors.

        Returns:
            The connection, which is blocking and owned by the caller, and the response.
        """
        patience_s = self._patience_s
        if timeout_s is not None:
            patience_s = min(timeout_s, patience_s)
        end = time.monotonic() + patience_s
        while True:
            self.check_open()
            try:
                return self.open_now(message, end - time.monotonic())
            except NoAnswer:
                # Retry only if a new server may yet appear in the folder.
                is_over = time.monotonic() >= end
                if is_over or self._folder is None or not self._folder.exists():
                    raise
                time.sleep(_RETRY_S)

    def open_now(
        self, message: Message, patience_s: float = 0.0
    ) -> tuple[socket.socket, Any]:
        """Opens a session without retries, even if the client is closed; see `open`."""
        answer_s = max(patience_s, _LEAST_ANSWER_S) + float(message.get("wait_s", 0.0))
        until = time.monotonic() + answer_s
        try:
            connection = (
                self._connect_net(until)
                if self._folder is None
                else _connect_host(self._folder, until)
            )
            try:
                connection.settimeout(max(0.001, until - time.monotonic()))
                # A server that rejects a client sends an error without reading.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    send_line(connection, self._dialect.stamp(message))
                answer = read_line(connection, until, _MAX_ANSWER_BYTES)
                if answer is None:
                    raise NoAnswer(
                        f"{self._dialect.name} ({self.name}) has ended; restart it"
                    )
                connection.settimeout(None)
                return connection, answer_of(answer)
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            raise NoAnswer(
                f"{self._dialect.name} ({self.name}) does not answer: "
                f"{error.strerror or error}; start it, or correct its address"
            ) from error

    def check_open(self) -> None:
        """Raises UsageError if the client is closed."""
        if self._is_closed:
            raise UsageError(
                f"{self._dialect.name} ({self.name}, closed) cannot be used; connect "
                "again"
            )

    def close(self) -> None:
        """Prevents further requests, and retries of current requests. Idempotent."""
        self._is_closed = True

    def _connect_net(self, until: float) -> socket.socket:
        until = min(until, time.monotonic() + _CONNECT_S)
        connection: socket.socket = OwnedSocket.of(
            socket.create_connection(
                (self._address.host, self._address.port), until - time.monotonic()
            )
        )
        try:
            keep_alive(connection)
            if self._tls is not None:
                connection = self._tls(connection, until)
            elif self._token is not None and not _is_safe(connection):
                raise UsageError(
                    f"address ({self._address}) must be on this host to send a token "
                    "without encryption; pass ca_file or fingerprint"
                )
            connection.settimeout(max(0.001, until - time.monotonic()))
            # A server that rejects the client sends an error, which open_now reads.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send_line(connection, self._dialect.stamp({"token": self._token or ""}))
        except BaseException:
            connection.close()
            raise
        return connection


def _connect_host(folder: Path, until: float) -> socket.socket:
    # Check before each connection: another user could recreate a removed folder.
    check_own_folder("directory", folder)
    connection = OwnedSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(max(0.001, until - time.monotonic()))
    while True:
        try:
            connection.connect(str(folder / SOCKET_NAME))
            return connection
        except OSError as error:
            # If the listen backlog is full, connect fails instead of waiting.
            if isinstance(error, BlockingIOError) and time.monotonic() < until:
                time.sleep(_RETRY_S)
                continue
            connection.close()
            raise


def _is_safe(connection: socket.socket) -> bool:
    return is_loopback(str(connection.getpeername()[0]))
