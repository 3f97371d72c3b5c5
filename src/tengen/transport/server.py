"""The server of a service, which accepts clients and handles their requests."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tengen import _core
from tengen.errors import RunError, TengenError, UsageError, os_reason
from tengen.transport.lines import ServiceFull, error_answer, read_line, send_line
from tengen.transport.listener import Listener
from tengen.transport.service import RESUME, Message, Service

# The pause before the next client is accepted if descriptors or memory are exhausted.
_PAUSE_S = 0.1
# The share of file descriptors for sessions; requests and files use the rest.
_SESSIONS_SHARE = 7 / 8


# The maximum share of the connection slots that one peer may occupy.
_PEER_SHARE = 3 / 4


class Server:
    """A server with one thread that accepts clients and one thread per active client.

    On a connection, a client sends a greeting and one request and receives a response.
    Then the connection is closed, or becomes a session, which may be idle for any time.
    A client that is too slow, sends invalid or excessive data, or exceeds a limit is
    rejected without delaying other clients. Limits apply per peer and in total. If the
    process has no free descriptors, clients wait. New sessions are rejected when
    descriptors become scarce, so that requests can still be served.

    Args:
        listener: The bound socket, which the server owns. Listening starts immediately.
        service: The functions that handle requests and sessions.
    """

    def __init__(self, listener: Listener, service: Service) -> None:
        self._listener = listener
        self._service = service
        self._name = service.dialect.name
        self._limits = service.limits
        self._hellos = Places(self._limits.max_hellos)
        self._connections = Places(self._limits.max_connections)
        self._opening = threading.Condition()
        self._num_opening = 0
        self._is_closed = False
        self._is_closing = threading.Event()
        listener.bound.listen(128)
        self._thread = threading.Thread(
            target=self._accept, name=f"{self._name}-accept", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """The address to pass to a `Client`."""
        return self._listener.address

    def close(self) -> None:
        """Stops accepting clients. After it returns, no more sessions are opened."""
        self._is_closing.set()
        # Wakes the accepting thread, even on systems where the call raises OSError.
        with contextlib.suppress(OSError):
            self._listener.bound.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._opening:
            self._is_closed = True
            self._opening.wait_for(lambda: self._num_opening == 0)

    def _accept(self) -> None:
        while not self._is_closing.is_set():
            try:
                connection, address = self._listener.bound.accept()
            except (OSError, MemoryError):
                self._is_closing.wait(_PAUSE_S)
                continue
            # Clients of a Unix domain socket have no network address.
            peer = address[0] if isinstance(address, tuple) else None
            if not self._hellos.take(peer):
                full = self._full("greetings", self._limits.max_hellos)
                self._turn_away(connection, full)
                continue
            try:
                threading.Thread(
                    target=self._receive,
                    args=(connection, peer),
                    name=f"{self._name}-hello",
                    daemon=True,
                ).start()
            except (RuntimeError, MemoryError):  # no thread can be started
                self._hellos.leave(peer)
                self._turn_away(connection, _no_thread(self._name))
                self._is_closing.wait(_PAUSE_S)

    def _turn_away(self, connection: socket.socket, error: ServiceFull) -> None:
        """Rejects a client without starting a thread. Does not block."""
        with connection:
            # A TLS client could not read a plain line before the handshake.
            if self._listener.tls is None:
                connection.setblocking(False)
                _try_send(connection, error)

    def _receive(self, connection: socket.socket, peer: str | None) -> None:
        places, what, limit_s = self._hellos, "greeting", self._limits.hello_s
        try:
            until = time.monotonic() + limit_s
            connection = self._listener.secure(connection, until)
            self._listener.check(connection, self._service.dialect, until)
            if not self._connections.take(peer):
                raise self._full("connections", self._limits.max_connections)
            self._hellos.leave(peer)
            places, what = self._connections, "question"
            limit_s = self._limits.question_s
            most = self._service.dialect.max_question_bytes
            message = read_line(connection, time.monotonic() + limit_s, most)
            if message is not None:
                connection.settimeout(limit_s)
                # Ignores a client that has disconnected or does not read its response.
                with contextlib.suppress(OSError):
                    self._answer(connection, message)
        except TimeoutError:
            self._send_away(connection, _late(what, limit_s))
        except TengenError as error:
            self._send_away(connection, error)
        except MemoryError:
            self._send_away(connection, _short(self._name))
        except OSError:
            pass
        finally:
            connection.close()
            places.leave(peer)

    def _answer(self, connection: socket.socket, message: dict[str, Any]) -> None:
        kind = message.get("ask")
        try:
            self._service.dialect.check(message)
            if self._service.is_closing():
                raise self._closing()
            if not isinstance(kind, str):
                raise _unknown(kind)
            if kind in self._service.sessions:
                self._open(connection, kind, message)
            elif kind in self._service.questions:
                answer = self._service.questions[kind](message)
                send_line(connection, {"answer": answer})
            else:
                raise _unknown(kind)
        except (TengenError, _core.CoreError) as error:
            _try_send(connection, error)
        except OSError:
            raise
        except MemoryError:
            _try_send(connection, _short(self._name))
        except Exception as error:
            # Report unexpected errors too, so that the client does not wait.
            wrong = UsageError(
                f"message ({kind}) is malformed: {error!r}; use one version"
            )
            _try_send(connection, wrong)

    def _open(self, connection: socket.socket, kind: str, message: Message) -> None:
        connection.settimeout(None)
        with self._while_open(kind):
            try:
                if kind != RESUME:  # a resumed session has already been admitted
                    _check_descriptors(connection, self._name)
                answer = self._service.sessions[kind](connection, message)
            except OSError as error:
                raise RunError(
                    f"session (of this client) cannot be opened: {os_reason(error)}; "
                    "close other sessions, or raise the server's ulimit -n"
                ) from error
        send_line(connection, {"answer": answer})
        connection.close()

    @contextlib.contextmanager
    def _while_open(self, kind: str) -> Iterator[None]:
        with self._opening:
            if self._is_closed:
                raise self._closing()
            num_sessions = self._service.num_sessions() + self._num_opening
            most = self._limits.max_sessions
            if kind != RESUME and num_sessions >= most:
                raise RunError(
                    f"session (beside {num_sessions}) is above the server's limit, "
                    f"{most}; close other sessions, or start another server"
                )
            self._num_opening += 1
        try:
            yield
        finally:
            with self._opening:
                self._num_opening -= 1
                self._opening.notify_all()

    def _send_away(self, connection: socket.socket, error: Exception) -> None:
        """Sends an error; drains the input, because a reset would discard the error."""
        _try_send(connection, error)
        until = time.monotonic() + self._limits.linger_s
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(self._limits.linger_s)
            while time.monotonic() < until and connection.recv(65536):
                pass

    def _full(self, what: str, most: int) -> ServiceFull:
        return ServiceFull(
            f"{self._name} (full) serves at most {most} {what} at once, three quarters "
            "of them from one host; close some, or try again later"
        )

    def _closing(self) -> RunError:
        return RunError(f"{self._name} (closing) accepts no more requests; restart it")


def _check_descriptors(connection: socket.socket, service: str) -> None:
    """Raises RunError if a session would use one of the last free descriptors."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A new descriptor gets the lowest free number, which shows how many are in use.
    with connection.dup() as copy:
        lowest = copy.fileno()
    if most != resource.RLIM_INFINITY and lowest >= most * _SESSIONS_SHARE:
        raise RunError(
            f"session (descriptor {lowest} of {most}) must not take the {service}'s "
            f"last ones; close other sessions, or raise its ulimit -n"
        )


def _unknown(kind: object) -> UsageError:
    return UsageError(f"ask ({kind}) is not known; install one version on both sides")


def _no_thread(service: str) -> ServiceFull:
    return ServiceFull(
        f"thread (of the {service}'s process) cannot be started; close other clients, "
        f"or raise its ulimit -u"
    )


def _short(service: str) -> RunError:
    return RunError(
        f"memory (of the {service}'s process) is used up; request less at once, close "
        "other clients, or raise its ulimit -v"
    )


def _late(what: str, limit_s: float) -> RunError:
    return RunError(
        f"{what} (incomplete) must arrive within {limit_s:g} s; connect again, and "
        "send it at once"
    )


def _try_send(connection: socket.socket, error: Exception) -> None:
    with contextlib.suppress(OSError):
        send_line(connection, error_answer(error))


class Places:
    """A limit on concurrent clients, in total and per peer. Thread-safe, non-blocking.

    Args:
        most: The maximum number of clients, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_peer = max(1, int(most * _PEER_SHARE))
        self._num_taken = 0
        self._by_peer: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    def take(self, peer: str | None) -> bool:
        """Takes a slot if one is free for ``peer``; returns whether a slot was taken.

        Args:
            peer: The client's host; None for this host, which may use all slots.
        """
        with self._lock:
            num_own = self._by_peer[peer]
            is_greedy = peer is not None and num_own >= self._most_of_peer
            if self._num_taken >= self._most or is_greedy:
                return False
            self._by_peer[peer] += 1
            self._num_taken += 1
            return True

    def leave(self, peer: str | None) -> None:
        """Releases a slot that `take` took for ``peer``."""
        with self._lock:
            self._num_taken -= 1
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]
