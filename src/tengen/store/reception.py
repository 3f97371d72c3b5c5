"""Lets clients in: the first words on each connection to a store's listening socket."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tengen import _core
from tengen.errors import RunError, TengenError, UsageError
from tengen.store.host_protocol import (
    StoreFull,
    check_version,
    error_answer,
    read_line,
    send_line,
)
from tengen.store.local_backend import LocalBackend
from tengen.store.places import Places

__all__ = ["Reception"]

# For the greeting; then for the question to be there, and the answer to be taken.
_HELLO_S = 10.0
_LINE_S = 10.0
_MAX_HELLOS = 256
# Each is a thread, for as long as its one question takes to be asked and answered.
_MAX_CONNECTIONS = 1024
# Each is a thread of the core where its client is on another host.
_MAX_SESSIONS = 4096
_LINGER_S = 2.0
# What fails for want of descriptors or memory may go again in a moment.
_PAUSE_S = 0.1
# Of the descriptors that a process may have: the rest is for commands, files and logs.
_SESSIONS_SHARE = 7 / 8


def _as_it_is(connection: socket.socket, until: float) -> socket.socket:
    del until
    return connection


def _anybody(connection: socket.socket, until: float) -> None:
    del connection, until


class Reception:
    """A thread that accepts, and one for each client that speaks.

    A connection greets, asks one thing and is answered; then it is closed, or a
    session's, which may be silent for as long as its client lives. A client that says
    nothing, too much or nonsense is sent away, and keeps nobody else waiting. So are
    those who are too many at once, of one peer or of all. Where the process has no
    descriptors left clients wait until it has; sessions are refused before, so that
    commands are still answered.

    Args:
        listener: The bound socket; listens from here on, closed by ``close``.
        backend: The store.
        kinds: What a session may be asked for as.
        open_session: Takes a connection, the kind and what was asked; opens a session
            with a descriptor of its own, and returns the answer.
        num_sessions: Returns how many there are.
        secure: Takes a new connection and the time by which it must be done, and
            returns the one to speak on.
        check: The same, and raises a TengenError for a client that may not ask.
        is_encrypted: Whether a line means nothing to clients before ``secure``.
    """

    def __init__(
        self,
        listener: socket.socket,
        backend: LocalBackend,
        kinds: Sequence[str],
        open_session: Callable[[socket.socket, str, Mapping[str, Any]], dict[str, Any]],
        num_sessions: Callable[[], int],
        secure: Callable[[socket.socket, float], socket.socket] = _as_it_is,
        check: Callable[[socket.socket, float], None] = _anybody,
        *,
        is_encrypted: bool = False,
    ) -> None:
        self._listener = listener
        self._backend = backend
        self._kinds = kinds
        self._open_session = open_session
        self._num_sessions = num_sessions
        self._secure = secure
        self._check = check
        self._is_encrypted = is_encrypted
        self._hellos = Places(_MAX_HELLOS)
        self._connections = Places(_MAX_CONNECTIONS)
        self._opening = threading.Condition()
        self._num_opening = 0
        self._is_closed = False
        self._is_closing = threading.Event()
        listener.listen(128)
        self._thread = threading.Thread(
            target=self._accept, name="store-accept", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Lets nobody in any more; no session is opened after it returns."""
        self._is_closing.set()
        # Wakes the thread that accepts; some systems refuse it and wake it anyway.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._opening:
            self._is_closed = True
            self._opening.wait_for(lambda: self._num_opening == 0)

    def _accept(self) -> None:
        while not self._is_closing.is_set():
            try:
                connection, address = self._listener.accept()
            except OSError:
                self._is_closing.wait(_PAUSE_S)
                continue
            # One of this host's own sockets has no address.
            peer = address[0] if isinstance(address, tuple) else None
            if not self._hellos.take(peer):
                self._turn_away(connection)
                continue
            hello = threading.Thread(
                target=self._receive,
                args=(connection, peer),
                name="store-hello",
                daemon=True,
            )
            try:
                hello.start()
            except RuntimeError:  # no thread to be had
                self._hellos.leave(peer)
                connection.close()
                self._is_closing.wait(_PAUSE_S)

    def _turn_away(self, connection: socket.socket) -> None:
        """Refuses one that there is no thread for, and waits for nothing."""
        with connection:
            if not self._is_encrypted:
                connection.setblocking(False)
                _try_send(connection, error_answer(_full("greetings", _MAX_HELLOS)))

    def _receive(self, connection: socket.socket, peer: str | None) -> None:
        try:
            known = self._greet(connection, peer)
        finally:
            self._hellos.leave(peer)
        if known is None:
            return
        try:
            with known:
                self._serve(known)
        finally:
            self._connections.leave(peer)

    def _greet(
        self, connection: socket.socket, peer: str | None
    ) -> socket.socket | None:
        """Returns what to speak on, by who has a place; None: it was sent away."""
        known, is_let_in = connection, False
        try:
            until = time.monotonic() + _HELLO_S
            known = self._secure(connection, until)
            self._check(known, until)
            is_let_in = self._connections.take(peer)
            if is_let_in:
                return known
            raise _full("connections", _MAX_CONNECTIONS)
        except TimeoutError:
            _send_away(known, error_answer(_late("greeting", _HELLO_S)))
        except TengenError as error:
            _send_away(known, error_answer(error))
        except OSError:
            pass
        finally:
            if not is_let_in:
                known.close()
        return None

    def _serve(self, connection: socket.socket) -> None:
        try:
            message = read_line(connection, time.monotonic() + _LINE_S)
        except TimeoutError:
            _send_away(connection, error_answer(_late("question", _LINE_S)))
        except TengenError as error:
            _send_away(connection, error_answer(error))
        except OSError:
            pass
        else:
            if message is not None:
                connection.settimeout(_LINE_S)
                # A client that has gone, or takes nothing, needs no answer.
                with contextlib.suppress(OSError):
                    self._answer(connection, message)

    def _answer(self, connection: socket.socket, message: dict[str, Any]) -> None:
        kind = message.get("ask")
        try:
            check_version(message)
            if self._backend.is_closed:
                raise _closing()
            if isinstance(kind, str) and kind in self._kinds:
                self._open(connection, kind, message)
            elif kind == "tables":
                send_line(connection, {"answer": self._tables()})
            elif kind == "command":
                result = self._backend.command(message["name"], message["arguments"])
                send_line(connection, {"answer": result})
            else:
                raise UsageError(f"ask ({kind}) must be known; install the same tengen")
        except (TengenError, _core.CoreError) as error:
            _try_send(connection, error_answer(error))
        except OSError:
            raise
        except Exception as error:
            # Whatever a message has brought about: who sent it is not left waiting.
            wrong = UsageError(
                f"message ({kind}) is refused: {error!r}; send what it needs"
            )
            _try_send(connection, error_answer(wrong))

    def _tables(self) -> list[dict[str, Any]]:
        answer = []
        for entry in self._backend.tables():
            slots_per_slab, slot_bytes = self._backend.pool_layout(entry)
            answer.append(
                {
                    "number": entry.number,
                    "pool": entry.pool,
                    "layout": {
                        "slots_per_slab": slots_per_slab,
                        "slot_bytes": slot_bytes,
                    },
                    "config": entry.config.to_dict(),
                }
            )
        return answer

    def _open(
        self, connection: socket.socket, kind: str, message: dict[str, Any]
    ) -> None:
        connection.settimeout(None)
        if kind != "resume":  # which was let in before
            _check_descriptors(connection)
        entries = self._backend.tables()
        for name, known in (
            ("pool", [one.pool for one in entries]),
            ("table", [one.number for one in entries]),
        ):
            if message.get(name, known[0]) not in known:
                raise UsageError(
                    f"{kind} ({message[name]}) must be of a table; ask for the tables"
                )
        with self._while_open(kind):
            answer = self._open_session(connection, kind, message)
        send_line(connection, {"answer": answer})
        connection.close()

    @contextlib.contextmanager
    def _while_open(self, kind: str) -> Iterator[None]:
        with self._opening:
            if self._is_closed:
                raise _closing()
            # One that goes on is counted already.
            num_sessions = self._num_sessions() + self._num_opening
            if kind != "resume" and num_sessions >= _MAX_SESSIONS:
                raise RunError(
                    f"session (beside {num_sessions}) must be one of at most "
                    f"{_MAX_SESSIONS}; close writers and samplers, or use more shards"
                )
            self._num_opening += 1
        try:
            yield
        finally:
            with self._opening:
                self._num_opening -= 1
                self._opening.notify_all()


def _check_descriptors(connection: socket.socket) -> None:
    """Refuses a session where it would take of the last descriptors."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A new one has the lowest number that is free.
    lowest = os.dup(connection.fileno())
    os.close(lowest)
    if most != resource.RLIM_INFINITY and lowest >= most * _SESSIONS_SHARE:
        raise RunError(
            f"session (descriptor {lowest} of {most}) must leave some of the store's "
            f"process; close writers and samplers, or raise its ulimit -n"
        )


def _full(what: str, most: int) -> StoreFull:
    return StoreFull(
        f"store (full) serves at most {most} {what} at once, and of one host three "
        f"quarters of them; try again"
    )


def _late(what: str, limit_s: float) -> RunError:
    return RunError(
        f"{what} (not whole) must come within {limit_s:g} s; connect again, and ask at "
        f"once"
    )


def _closing() -> RunError:
    return RunError("store (closing) serves nobody any more; start it again")


def _try_send(connection: socket.socket, message: dict[str, Any]) -> None:
    # A client that has gone needs no answer.
    with contextlib.suppress(OSError):
        send_line(connection, message)


def _send_away(connection: socket.socket, message: dict[str, Any]) -> None:
    """Sends the last word, and sees to it that unread bytes do not break it off."""
    _try_send(connection, message)
    until = time.monotonic() + _LINGER_S
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_LINGER_S)
        while time.monotonic() < until and connection.recv(65536):
            pass
