"""The server: one address, until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from tengen.errors import UsageError, os_reason
from tengen.serve.app import Application

__all__ = ["bind", "is_loopback", "run"]

_BACKLOG = 128
_MAX_CONNECTIONS = 256
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
    return listener


def run(
    application: Application, listener: socket.socket, on_start: Callable[[], None]
) -> None:
    """Serves until SIGINT or SIGTERM. Runs on the main thread.

    Args:
        application: What answers.
        listener: Of ``bind``; closed at the end.
        on_start: Called once requests are answered.
    """
    config = uvicorn.Config(
        application.asgi,
        access_log=False,
        log_level="warning",
        ws="none",
        server_header=False,
        date_header=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_END_S,
    )
    asyncio.run(_Server(config, application, on_start).serve([listener]))


class _Server(uvicorn.Server):
    """Ends by itself what it tells pages, which would never end else."""

    def __init__(
        self,
        config: uvicorn.Config,
        application: Application,
        on_start: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._application = application
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Uvicorn's own raises the signal again at the end, which kills the process.
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self._application.close()
        self.should_exit = True
