"""The connections between a runner and its role processes.

The runner has a ``Hub``, which creates a ``Ticket`` for each process and passes the
ticket in the process's environment. The process connects back with ``join``. Each line
has an authentication code over its direction, number and text, computed with the
ticket's secret. The secret itself is never sent over this connection. Lines are not
encrypted, because they contain only counts and names. Ray or MPI, which passes
environments to other hosts, must be trusted with tickets.

Source: RFC 2104 (HMAC).
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import select
import socket
import threading
import time
from collections.abc import MutableMapping, Sequence

from tengen.errors import RunError, UsageError
from tengen.launch.messages import MOST_BYTES, Begun, Message, decode, encode
from tengen.run import RunDirectory, service_folder
from tengen.transport import (
    Client,
    Dialect,
    HostFolder,
    Listener,
    NetAddress,
    NoAnswer,
    OwnedSocket,
    Server,
    Service,
)
from tengen.transport import Message as Question

TICKET_VARIABLE = "TENGEN_RUNNER_TICKET"
"""The environment variable with the ticket that a process needs to join its runner."""

# Requests are small, because a client may send one before its proof is checked.
_RUNNER = Dialect("runner", version=1, max_question_bytes=4096)
_JOIN_S = 60.0
"""Seconds for which a process retries to connect, unless its connection is refused."""
_ANSWER_S = 10.0
_RETRY_S = 0.2
_CODE_BYTES = 32


class Stream:
    """A connection for messages. Any thread may send, but only one may receive.

    Args:
        connection: The connection, which the stream owns and closes.
        secret: The ticket's secret.
        is_runner: Whether this is the runner's side.
    """

    def __init__(
        self, connection: socket.socket, secret: bytes, *, is_runner: bool
    ) -> None:
        self._connection = connection
        self._secret = secret
        self._own, self._other = (b"r", b"c") if is_runner else (b"c", b"r")
        self._sending = threading.Lock()
        self._num_sent = self._num_received = 0
        self._buffer = bytearray()

    def fileno(self) -> int:
        """Returns the connection's file descriptor."""
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Sends a message to the other side.

        Raises:
            ConnectionError: The other side is gone.
        """
        body = encode(message)
        with self._sending:
            code = _code(self._secret, self._own, self._num_sent, body)
            self._num_sent += 1
            try:
                self._connection.sendall(code.hex().encode() + b" " + body + b"\n")
            except OSError as error:
                # Over TCP, ``error`` may also be a timeout or a missing route.
                raise ConnectionError(f"connection ({error}) is broken") from error

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Returns the next message, or None if the connection has ended. Blocks.

        Raises:
            TimeoutError: No message arrived within ``timeout_s`` seconds.
            RunError: A line is too long or not authentic.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while (size := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MOST_BYTES + 2 * _CODE_BYTES + 1:
                raise _foreign("is too long")
            if end is not None and not self._is_readable(end - time.monotonic()):
                raise TimeoutError
            try:
                found = self._connection.recv(1 << 16)
            except OSError:
                return None
            if not found:
                return None
            self._buffer += found
        line = bytes(self._buffer[:size])
        del self._buffer[: size + 1]
        told, _, body = line.partition(b" ")
        code = _code(self._secret, self._other, self._num_received, body)
        self._num_received += 1
        if not hmac.compare_digest(told, code.hex().encode()):
            raise _foreign("has a wrong authentication code")
        return decode(body)

    def close(self) -> None:
        """Closes the connection on both sides. Thread-safe; idempotent."""
        # Shut down first, because that also wakes a receiving thread of this process.
        with contextlib.suppress(OSError):  # the other side may have closed it
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _is_readable(self, timeout_s: float) -> bool:
        poll = select.poll()
        try:
            poll.register(self._connection, select.POLLIN)
        except ValueError:
            return True  # the connection is closed; recv raises
        return bool(poll.poll(1000 * max(0.0, timeout_s)))


class Ticket:
    """The hub's addresses, and the credentials with which one process joins the hub.

    Args:
        hub: The runner's hub.
        addresses: The addresses of the hub.

    Attributes:
        environment: The environment variables that pass the ticket to the process.
    """

    def __init__(self, hub: Hub, addresses: Sequence[str]) -> None:
        self._hub = hub
        self.name = secrets.token_hex(16)
        self.secret = secrets.token_bytes(32)
        content = {
            "addresses": list(addresses),
            "name": self.name,
            "secret": self.secret.hex(),
        }
        self.environment = {TICKET_VARIABLE: json.dumps(content)}
        self._joined = threading.Event()
        self._connection: socket.socket | None = None

    def take(self, connection: socket.socket) -> None:
        """Takes ownership of the joined process's connection. Thread-safe."""
        self._connection = connection
        self._joined.set()

    def wait(self, timeout_s: float) -> Stream | None:
        """Waits for the process to join; returns its stream, or None if it did not."""
        if not self._joined.wait(timeout_s):
            return None
        assert self._connection is not None
        return Stream(self._connection, self.secret, is_runner=True)

    def close(self) -> None:
        """Makes the hub reject the ticket. Idempotent."""
        self._hub.forget(self)


class Hub:
    """The runner's server, which role processes join. Thread-safe.

    Args:
        listener: The listener, which the hub closes.
        addresses: The addresses to which processes connect; None: the listener's.
    """

    def __init__(
        self, listener: Listener, addresses: Sequence[str] | None = None
    ) -> None:
        self._addresses = [listener.address] if addresses is None else [*addresses]
        self._lock = threading.Lock()
        self._tickets: dict[str, Ticket] = {}
        self._folder: HostFolder | None = None
        service = Service(dialect=_RUNNER, sessions={"join": self._join})
        self._server = Server(listener, service)

    @classmethod
    def on_this_host(cls, run: RunDirectory) -> Hub:
        """Returns a hub that accepts only this user's processes on this host.

        Args:
            run: The run; the caller holds its ``train`` lock.

        Raises:
            UsageError: The hub's folder belongs to another user.
        """
        folder = HostFolder("runner", service_folder(run, "runner"))
        made = cls(folder.listen())
        made._folder = folder
        return made

    @classmethod
    def on_network(cls, hosts: Sequence[str]) -> Hub:
        """Returns a hub that accepts processes on other hosts.

        Args:
            hosts: IP addresses or names under which other hosts reach this host. If
                there are several, the hub listens on all network interfaces.

        Raises:
            RunError: No port is available.
        """
        has_both = socket.has_dualstack_ipv6()
        is_wide = len(hosts) > 1
        wide = "::" if has_both and any(":" in host for host in hosts) else "0.0.0.0"
        where = wide if is_wide else hosts[0]
        try:
            bound = OwnedSocket.of(
                socket.create_server(
                    (where, 0),
                    family=socket.AF_INET6 if ":" in where else socket.AF_INET,
                    dualstack_ipv6=where == "::",
                )
            )
        except OSError as error:
            raise RunError(
                f"address ({where}) of this host cannot be used, "
                f"{error.strerror or error}; check its network"
            ) from error
        port = bound.getsockname()[1]
        names = [str(NetAddress(host, port)) for host in hosts]
        return cls(Listener(bound, names[0]), names)

    def ticket(self) -> Ticket:
        """Returns a new ticket, with which one process can join."""
        ticket = Ticket(self, self._addresses)
        with self._lock:
            self._tickets[ticket.name] = ticket
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Makes this hub reject ``ticket``."""
        with self._lock:
            self._tickets.pop(ticket.name, None)

    def close(self) -> None:
        """Stops accepting processes. Open streams stay open. Idempotent."""
        self._server.close()
        if self._folder is not None:
            self._folder.remove()

    def _join(self, connection: socket.socket, message: Question) -> None:
        with self._lock:
            ticket = self._tickets.get(str(message.get("name")))
            proof = "" if ticket is None else _proof(ticket.secret)
            told = str(message.get("proof")).encode(errors="surrogatepass")
            if ticket is None or not hmac.compare_digest(told, proof.encode()):
                raise UsageError(
                    "ticket (of this process) must be an unused one of the runner; "
                    "start processes of a run with tengen train"
                )
            # Duplicate first, so that the ticket stays valid if no descriptor is free.
            joined = connection.dup()
            del self._tickets[ticket.name]
        # The runner sends nothing before Begun, which follows the hub's response.
        ticket.take(joined)


def join(environment: MutableMapping[str, str], begun: Begun) -> Stream:
    """Connects to the runner that started this process. Blocks for at most a minute.

    Args:
        environment: The environment variables of this process. The ticket is removed,
            so that processes started by an environment do not inherit the ticket.
        begun: The first message to the runner.

    Raises:
        UsageError: No runner started this process, or the runner rejects the ticket.
        RunError: The runner has ended or is unreachable.
    """
    addresses, name, secret = _content(environment.pop(TICKET_VARIABLE, ""))
    question = {"ask": "join", "name": name, "proof": _proof(secret)}
    until = time.monotonic() + _JOIN_S
    while True:
        may_come = False
        for address in addresses:
            client = Client(_RUNNER, address)
            try:
                connection, _ = client.open_now(question, _ANSWER_S)
            except NoAnswer as error:
                unreached = error
                is_refused = isinstance(
                    error.__cause__, (ConnectionRefusedError, FileNotFoundError)
                )
                may_come |= not is_refused
                continue
            stream = Stream(connection, secret, is_runner=False)
            try:
                stream.send(begun)
            except OSError as error:
                raise NoAnswer(f"runner ({address}) has just ended") from error
            return stream
        if not may_come or time.monotonic() >= until:
            raise unreached
        time.sleep(_RETRY_S)


def _content(text: str) -> tuple[list[str], str, bytes]:
    """Decodes a ticket into the hub's addresses, the ticket's name and its secret."""
    try:
        content = json.loads(text)
        addresses = [str(address) for address in content["addresses"]]
        if not addresses:
            raise ValueError("addresses must not be empty")
        return addresses, str(content["name"]), bytes.fromhex(content["secret"])
    except (LookupError, TypeError, ValueError, RecursionError):
        raise UsageError(
            f"environment ({TICKET_VARIABLE}, {'damaged' if text else 'not set'}) must "
            "contain a ticket; start processes of a run with tengen train"
        ) from None


def _proof(secret: bytes) -> str:
    return hmac.digest(secret, b"join", "sha256").hex()


def _code(secret: bytes, direction: bytes, number: int, body: bytes) -> bytes:
    return hmac.digest(secret, b"%s %d " % (direction, number) + body, "sha256")


def _foreign(what: str) -> RunError:
    return RunError(
        f"line (of a role process's connection) {what}; check who else uses the network"
    )
