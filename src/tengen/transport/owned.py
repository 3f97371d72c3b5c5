"""Sockets whose end tells the other side that this process has ended."""

from __future__ import annotations

import contextlib
import socket

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
        timeout_s = plain.gettimeout()
        owned = cls(plain.family, plain.type, plain.proto, plain.detach())
        owned.settimeout(timeout_s)
        return owned

    def _real_close(self) -> None:
        # Python calls this at the end of the socket and of all files made of it; until
        # then the descriptor is open.
        _core.disown_descriptor(self.fileno())
        super()._real_close()  # type: ignore[misc]

    def detach(self) -> int:
        """Returns its descriptor, which is the caller's from here on."""
        _core.disown_descriptor(self.fileno())
        return super().detach()

    def __del__(self) -> None:
        # One that could not be made has no attributes.
        with contextlib.suppress(AttributeError):
            self._real_close()
