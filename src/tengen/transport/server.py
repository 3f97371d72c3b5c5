"""The server's side: lets clients in, and answers the one question of a connection."""

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

__all__ = ["Places", "Server"]

# What fails for want of descriptors or memory may go again in a moment.
_PAUSE_S = 0.1
# Of the descriptors that a process may have: the rest is for questions and files.
_SESSIONS_SHARE = 7 / 8


# Of the places that one peer may have: the rest is for the others.
_PEER_SHARE = 3 / 4


class Server:
    """A thread that accepts, and one for each client that speaks.

    A connection greets, asks one thing and is answered; then it is closed, or a
    session's, which may be silent for as long as its client lives. A client that says
    nothing, too much or nonsense is sent away, and keeps nobody else waiting. So are
    clients that are too many at once, of one peer or of all. Where the process has no
    descriptors left clients wait until it has; sessions are refused before, so that
    questions are still answered.

    Args:
        listener: The bound socket; listens from here on, closed by ``close``.
        service: What clients may ask.
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
        """What a `Client` reaches the server by."""
        return self._listener.address

    def close(self) -> None:
        """Lets nobody in any more; no session is opened after it returns."""
        self._is_closing.set()
        # Wakes the thread that accepts; some systems refuse it and wake it anyway.
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
            # A socket of this host has no address.
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
            except (RuntimeError, MemoryError):  # no thread to be had
                self._hellos.leave(peer)
                self._turn_away(connection, _no_thread(self._name))
                self._is_closing.wait(_PAUSE_S)

    def _turn_away(self, connection: socket.socket, error: ServiceFull) -> None:
        """Refuses a client that there is no thread for, and waits for nothing."""
        with connection:
            # A line means nothing to a client that waits for encryption.
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
                # A client that has gone, or takes nothing, needs no answer.
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
            # Whatever a message has brought about: its sender is not left waiting.
            wrong = UsageError(
                f"message ({kind}) is refused: {error!r}; send what it needs"
            )
            _try_send(connection, wrong)

    def _open(self, connection: socket.socket, kind: str, message: Message) -> None:
        connection.settimeout(None)
        with self._while_open(kind):
            try:
                if kind != RESUME:  # which was let in before
                    _check_descriptors(connection, self._name)
                answer = self._service.sessions[kind](connection, message)
            except OSError as error:
                raise RunError(
                    f"session (of this client) cannot be opened: {os_reason(error)}; "
                    f"close others, or raise the server's ulimit -n"
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
                    f"session (beside {num_sessions}) must be one of at most "
                    f"{most}; close others, or use more servers"
                )
            self._num_opening += 1
        try:
            yield
        finally:
            with self._opening:
                self._num_opening -= 1
                self._opening.notify_all()

    def _send_away(self, connection: socket.socket, error: Exception) -> None:
        """Sends the last word; unread bytes do not break it off."""
        _try_send(connection, error)
        until = time.monotonic() + self._limits.linger_s
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(self._limits.linger_s)
            while time.monotonic() < until and connection.recv(65536):
                pass

    def _full(self, what: str, most: int) -> ServiceFull:
        return ServiceFull(
            f"{self._name} (full) serves at most {most} {what} at once, and of one "
            f"host three quarters of them; try again"
        )

    def _closing(self) -> RunError:
        return RunError(
            f"{self._name} (closing) serves nobody any more; start it again"
        )


def _check_descriptors(connection: socket.socket, service: str) -> None:
    """Refuses a session where it would take of the last descriptors."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A new one has the lowest number that is free.
    with connection.dup() as copy:
        lowest = copy.fileno()
    if most != resource.RLIM_INFINITY and lowest >= most * _SESSIONS_SHARE:
        raise RunError(
            f"session (descriptor {lowest} of {most}) must leave some of the "
            f"{service}'s process; close other sessions, or raise its ulimit -n"
        )


def _unknown(kind: object) -> UsageError:
    return UsageError(f"ask ({kind}) must be known; install the same tengen")


def _no_thread(service: str) -> ServiceFull:
    return ServiceFull(
        f"thread (of the {service}'s process) cannot be started; close other clients, "
        f"or raise its ulimit -u"
    )


def _short(service: str) -> RunError:
    return RunError(
        f"memory (of the {service}'s process) is used up; ask for less at once, close "
        f"other clients, or raise its ulimit -v"
    )


def _late(what: str, limit_s: float) -> RunError:
    return RunError(
        f"{what} (not whole) must come within {limit_s:g} s; connect again, and ask at "
        f"once"
    )


def _try_send(connection: socket.socket, error: Exception) -> None:
    with contextlib.suppress(OSError):
        send_line(connection, error_answer(error))


class Places:
    """Counts who is at one thing at once. Thread-safe; never waits.

    Args:
        most: At once, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_peer = max(1, int(most * _PEER_SHARE))
        self._num_taken = 0
        self._by_peer: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    def take(self, peer: str | None) -> bool:
        """Takes a place; whether there was one.

        Args:
            peer: The host that it is for; None: of this host, which is the only one.
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
        """Gives back a place that was taken for the same peer."""
        with self._lock:
            self._num_taken -= 1
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]
