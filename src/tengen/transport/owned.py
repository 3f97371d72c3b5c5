"""Sockets that forked processes do not inherit."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import select
import socket
import time
from typing import Any

from tengen import _core


class OwnedSocket(socket.socket):
    """A socket that is closed in forked processes.

    A process that an environment forks would otherwise keep the port of a killed
    server, or the session of a killed client, open until the forked process exits.
    """

    def __init__(
        self,
        family: int = -1,
        type: int = -1,
        proto: int = -1,
        fileno: int | None = None,
    ) -> None:
        super().__init__(family, type, proto, fileno)
        _core.own_descriptor(self.fileno())

    @classmethod
    def of(cls, plain: socket.socket) -> OwnedSocket:
        """Takes ownership of a plain socket, which is detached."""
        if isinstance(plain, cls):
            return plain
        timeout_s = plain.gettimeout()
        owned = cls(plain.family, plain.type, plain.proto, plain.detach())
        owned.settimeout(timeout_s)
        return owned

    def _real_close(self) -> None:
        # Called when the socket and all files that ``makefile`` created are closed.
        _core.close_owned(super().detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """Accepts a connection like `socket.socket.accept`; returns an OwnedSocket."""
        timeout_s = self.gettimeout()
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # accept_owned blocks forks, so it must not wait for a connection.
            taken = _core.accept_owned(self.fileno())
            if taken >= 0:
                connection = OwnedSocket(self.family, self.type, self.proto, taken)
                connection.settimeout(socket.getdefaulttimeout())
                try:
                    return connection, connection.getpeername()
                except OSError:  # the client has already disconnected
                    connection.close()
                    continue
            if self.fileno() < 0:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            left_s = end - time.monotonic()
            if taken not in (-errno.EAGAIN, -errno.EINTR) or timeout_s == 0.0:
                raise OSError(-taken, os.strerror(-taken))
            if left_s <= 0.0:
                raise TimeoutError("timed out")
            poll = select.poll()
            poll.register(self.fileno(), select.POLLIN)
            # On some systems poll does not wake if another thread closes the socket.
            poll.poll(1000.0 * min(left_s, 1.0))

    def dup(self) -> OwnedSocket:
        """Returns a duplicate of this socket, as an OwnedSocket."""
        copy = _core.dup_owned(self.fileno())
        if copy < 0:
            raise OSError(-copy, os.strerror(-copy))
        owned = OwnedSocket(self.family, self.type, self.proto, copy)
        owned.settimeout(self.gettimeout())
        return owned

    def detach(self) -> int:
        """Detaches the descriptor and returns it; forks still do not inherit it.

        Pass the descriptor to code of the core that takes ownership of it, or to
        ``_core.close_owned``.
        """
        return super().detach()

    def __del__(self) -> None:
        # If the constructor failed, the socket has no attributes.
        with contextlib.suppress(AttributeError):
            self._real_close()
