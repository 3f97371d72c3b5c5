"""The client's side: asks a service questions, and opens sessions of it."""

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
from tengen.transport.tls import client_tls

__all__ = ["Client"]

# Of an answer, which a client trusts more than a server trusts a question.
_MAX_ANSWER_BYTES = 64 << 20
# An answer may take so long, however little time the caller has: servers are busy.
_LEAST_ANSWER_S = 2.0
_CONNECT_S = 10.0
_RETRY_S = 0.05


class Client:
    """Asks a service of another process; each question is a connection of its own.

    Thread-safe. Nothing is sent before the first question.

    Args:
        dialect: The service's.
        address: The folder of a server of this host, or ``tcp://HOST:PORT`` of any.
        patience_s: How long an answer is waited for, 0 or more; 2 s are the least. For
            a folder, also how long a question waits for another server where the one
            that it was sent to was killed.
        token: For ``tcp``, what the server wants to be told; None: that of the
            environment.
        ca_file: For ``tcp``, PEM of who vouches for the server's certificate, for TLS.
        fingerprint: For ``tcp``, SHA-256 of the certificate in hex, instead.

    Raises:
        UsageError: The address or an option cannot be used.

    Attributes:
        name: The address, for errors.
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
                self._tls = client_tls(
                    dialect.name, self._address.host, ca_file, fingerprint
                )
            self.name = str(self._address)
        else:
            # A link may lie where a socket's address would be too long.
            self._folder = Path(address).resolve()
            self.name = str(self._folder)

    def ask(self, message: Message, timeout_s: float | None = None) -> Any:
        """Returns the answer to a question.

        Args:
            message: The question, with what is asked as its ``ask``. A server that may
                wait before it answers is given ``wait_s`` more.
            timeout_s: Less patience than the client's; None: as much.

        Raises:
            NoAnswer: Nobody answers, or too many ask.
            RunError: The service has failed, or closes.
            UsageError: The service refused the question, or the client is closed.
            CoreError: The service's core did.
        """
        connection, answer = self.open(message, timeout_s)
        connection.close()
        return answer

    def open(
        self, message: Message, timeout_s: float | None = None
    ) -> tuple[socket.socket, Any]:
        """Opens a session; see `ask`.

        Returns:
            The connection, blocking and the caller's to close, and the answer.
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
                # Only to a folder, while it is there, may another server come.
                is_over = time.monotonic() >= end
                if is_over or self._folder is None or not self._folder.exists():
                    raise
                time.sleep(_RETRY_S)

    def open_now(
        self, message: Message, patience_s: float = 0.0
    ) -> tuple[socket.socket, Any]:
        """Opens a session with the server that is there now, closed or not."""
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
                # A server that turns a client away does not read: its word is there.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    send_line(connection, self._dialect.stamp(message))
                answer = read_line(connection, until, _MAX_ANSWER_BYTES)
                if answer is None:
                    raise NoAnswer(
                        f"{self._dialect.name} ({self.name}) ended; start it again"
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
        """Raises UsageError once the client was closed."""
        if self._is_closed:
            raise UsageError(
                f"{self._dialect.name} ({self.name}, closed) must be open; connect "
                f"again"
            )

    def close(self) -> None:
        """Asks no more; questions that wait for another server end. Idempotent."""
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
                    f"address ({self._address}) must be of this host for a token to go "
                    f"without encryption; pass ca_file or fingerprint"
                )
            connection.settimeout(max(0.001, until - time.monotonic()))
            # As for a question: the word of a server that turns away is read later.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send_line(connection, self._dialect.stamp({"token": self._token or ""}))
        except BaseException:
            connection.close()
            raise
        return connection


def _connect_host(folder: Path, until: float) -> socket.socket:
    # Each time: once a server's folder is gone, anybody may have its name.
    check_own_folder("directory", folder)
    connection = OwnedSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(max(0.001, until - time.monotonic()))
    while True:
        try:
            connection.connect(str(folder / SOCKET_NAME))
            return connection
        except OSError as error:
            # Where too many wait to be let in, the next one is not made to.
            if isinstance(error, BlockingIOError) and time.monotonic() < until:
                time.sleep(_RETRY_S)
                continue
            connection.close()
            raise


def _is_safe(connection: socket.socket) -> bool:
    return is_loopback(str(connection.getpeername()[0]))
