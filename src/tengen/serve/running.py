"""The HTTP server: listens on one address, and limits its connections."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tengen.errors import UsageError, os_reason
from tengen.serve.app import Application
from tengen.transport import OwnedSocket

_FULL = b"server (full) answers as many requests as it can; try again\n"


class Connection(H11Protocol):
    """A connection with time limits for sending requests and reading responses.

    If there are too many connections, the one that has been idle for longest is closed
    for a new one, even if its client has not read all data. A connection with a request
    in progress is closed only if its client does not read. The guard rejects clients
    without access immediately, so such clients cannot hold connections for long.
    """

    max_connections = 256
    request_s = 20.0  # time limit for a request, from the connection or first byte
    unread_s = 20.0  # time within which a client must read some pending data

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _idle_since: float = 0.0
    _is_over = False

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        """Starts the request timer, and closes a connection if there are too many."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._begin_request()
        # Do not count aborted connections, whose descriptors the event loop closes in
        # its next iteration.
        living = [
            one
            for one in self.connections
            if isinstance(one, Connection) and not one._is_over
        ]
        if len(living) <= self.max_connections:
            return
        idle = [one for one in living if one is not self and one._is_idle]
        if idle:
            min(idle, key=lambda one: one._idle_since)._end()
            return
        head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(_FULL)}\r\n"
        transport.write(f"{head}Connection: close\r\n\r\n".encode() + _FULL)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the connection's timers."""
        self._end_request()
        self._end_unread()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receives bytes of a request; starts or stops the request timer."""
        if self._late is None and self._is_idle:
            self._begin_request()
        super().data_received(data)
        if not self._is_idle and not self.cycle.more_body:
            self._end_request()

    def on_response_complete(self) -> None:
        """Marks the connection as idle until the next request."""
        self._end_request()
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Starts the timer that limits how long data may stay unread."""
        super().pause_writing()
        self._end_unread()
        self._unread = self.loop.call_later(self.unread_s, self._end)

    def resume_writing(self) -> None:
        """Stops the timer for unread data: the client has read some."""
        self._end_unread()
        super().resume_writing()

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _begin_request(self) -> None:
        self._late = self.loop.call_later(self.request_s, self._end)

    def _end_request(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _end(self) -> None:
        # Not close(), which would wait until the client has read all data.
        self._is_over = True
        self._end_request()
        self._end_unread()
        self.transport.abort()


_BACKLOG = 128
_END_S = 2


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach the address ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on ``host`` and ``port``.

    Args:
        host: An address of this machine, or its host name.
        port: The port; 0 for a free port that the system chooses.

    Raises:
        UsageError: The address does not exist, or the port is in use.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"address ({host}:{port}) cannot be used, {os_reason(error)}; choose "
            "another --port or --host"
        ) from error
    return OwnedSocket.of(listener)


class Server(uvicorn.Server):
    """An HTTP server for one application.

    Args:
        application: The application that handles the requests.
        listener: A socket from ``bind``. The server closes it at the end.
    """

    def __init__(self, application: Application, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                application.asgi,
                access_log=False,
                log_level="warning",
                ws="none",
                server_header=False,
                proxy_headers=False,
                date_header=False,
                http=Connection,
                timeout_graceful_shutdown=_END_S,
            )
        )
        self._listener = listener
        self._on_start: Callable[[], None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_until_stopped(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Serves until ``stop`` or, on the main thread, SIGINT or SIGTERM. Blocks.

        Args:
            on_start: Called once the server handles requests.
        """
        self._on_start = on_start
        asyncio.run(self.serve([self._listener]))

    def stop(self) -> None:
        """Requests that a started server stop. Thread-safe; does not wait."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts handling requests, then calls ``on_start``."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Context manager that stops the server on SIGINT and SIGTERM.

        Uvicorn's version raises the signals again at exit, which kills the process.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        # Keep ignored signals ignored, such as SIGINT in a script's background job.
        numbers = [
            number
            for number in (signal.SIGINT, signal.SIGTERM)
            if signal.getsignal(number) is not signal.SIG_IGN
        ]
        for number in numbers:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.should_exit = True
