"""Connections of the server: those that say or read nothing keep nobody out."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]

_FULL = b"server (full) answers as many requests as it can; try again\n"


class Connection(H11Protocol):
    """A connection that must send whole requests, and read the answers, in time.

    Where there are too many connections, the one that has been without a request for
    longest is closed for a new one, with what its client has not read. What is being
    answered is closed only if its client does not read: the guard behind it answers
    those who may not ask at once, so only clients that it lets in can hold connections
    for long.
    """

    max_connections = 256
    request_s = 20.0  # for a whole request, from the connection or its first byte on
    unread_s = 20.0  # in which a client must read some of what waits for it

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _idle_since: float = 0.0
    _is_over = False

    def connection_made(  # type: ignore[override]
        self, transport: asyncio.Transport
    ) -> None:
        """Begins; makes room where there are too many."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._begin_request()
        # Each counts until its descriptor is closed, at most one turn of the loop after
        # its end.
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
        """Ends."""
        self._end_request()
        self._end_unread()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of a request."""
        if self._late is None and self._is_idle:
            self._begin_request()
        super().data_received(data)
        if not self._is_idle and not self.cycle.more_body:
            self._end_request()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        self._end_request()
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Waits for the client to read."""
        super().pause_writing()
        self._end_unread()
        self._unread = self.loop.call_later(self.unread_s, self._end)

    def resume_writing(self) -> None:
        """Goes on, as the client has read."""
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
        # Not close(), which waits until the client has read all there is.
        self._is_over = True
        self._end_request()
        self._end_unread()
        self.transport.abort()
