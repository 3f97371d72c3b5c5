"""Sockets whose end tells the other side that this process has ended."""

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

__all__ = ["OwnedSocket"]


class OwnedSocket(socket.socket):
    """A socket that a forked process has no part in.

    Without it a process that an environment forks would keep the port of a killed
    server, and a session of a killed client, for as long as it runs.
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
        """Takes a socket over."""
        if isinstance(plain, cls):
            return plain
        timeout_s = plain.gettimeout()
        owned = cls(plain.family, plain.type, plain.proto, plain.detach())
        owned.settimeout(timeout_s)
        return owned

    def _real_close(self) -> None:
        # Python calls this at the end of the socket and of all files made of it; until
        # then the descriptor is open.
        _core.close_owned(super().detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """Takes a connection, which is owned too, as `socket.socket.accept` does."""
        timeout_s = self.gettimeout()
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # Nobody can fork while the core accepts, so it does not wait there.
            taken = _core.accept_owned(self.fileno())
            if taken >= 0:
                connection = OwnedSocket(self.family, self.type, self.proto, taken)
                connection.settimeout(socket.getdefaulttimeout())
                try:
                    return connection, connection.getpeername()
                except OSError:  # it has gone already
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
            # Some systems do not tell that another thread has closed the socket.
            poll.poll(1000.0 * min(left_s, 1.0))

    def dup(self) -> OwnedSocket:
        """Returns a copy, which is owned too."""
        copy = _core.dup_owned(self.fileno())
        if copy < 0:
            raise OSError(-copy, os.strerror(-copy))
        owned = OwnedSocket(self.family, self.type, self.proto, copy)
        owned.settimeout(self.gettimeout())
        return owned

    def detach(self) -> int:
        """Returns its descriptor, which stays owned.

        Pass it to a part of the core that takes it over, or to ``_core.close_owned``: a
        process that is forked meanwhile has no part in it.
        """
        return super().detach()

    def __del__(self) -> None:
        # One that could not be made has no attributes.
        with contextlib.suppress(AttributeError):
            self._real_close()
