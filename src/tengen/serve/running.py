"""The server: one address, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from tengen.errors import UsageError, os_reason
from tengen.serve.app import Application
from tengen.serve.connections import Connection
from tengen.transport import OwnedSocket

__all__ = ["Server", "bind", "is_loopback"]

_BACKLOG = 128
_END_S = 2


def is_loopback(host: str) -> bool:
    """Returns whether an address is one that this machine alone reaches."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Returns a socket that listens.

    Args:
        host: An address of this machine, or a name of one.
        port: 0 for any that is free.

    Raises:
        UsageError: There is no such address, or the port is taken.
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
            f"address ({host}:{port}) cannot be listened on, {os_reason(error)}; "
            f"choose another --port or --host"
        ) from error
    return OwnedSocket.of(listener)


class Server(uvicorn.Server):
    """Serves one application.

    Args:
        application: What answers.
        listener: Of ``bind``; closed at the end.
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
        """Serves until ``stop``, or on the main thread SIGINT or SIGTERM. Blocks.

        Args:
            on_start: Called once requests are answered.
        """
        self._on_start = on_start
        asyncio.run(self.serve([self._listener]))

    def stop(self) -> None:
        """Ends a server that has started, from any thread; does not wait."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to answer."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hears signals while it serves.

        Uvicorn's own would raise them again at the end, which kills the process.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        # What is ignored stays so, as SIGINT where a script has "tengen serve ... &".
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
