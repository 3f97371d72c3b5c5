"""Sockets whose end tells the other side that this process has ended."""

from __future__ import annotations

import socket

from tengen import _core

__all__ = ["OwnedSocket"]


class OwnedSocket(socket.socket):
    """A socket that a forked process has no part in.

    Without it a process that an environment forks would keep the port of a killed
    server, and a session of a killed client, for as long as it runs.

    Args:
        plain: The socket to take over.
    """

    def __init__(self, plain: socket.socket) -> None:
        timeout_s = plain.gettimeout()
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self.settimeout(timeout_s)
        _core.own_descriptor(self.fileno())

    def close(self) -> None:
        """Closes it. Idempotent."""
        _core.disown_descriptor(self.fileno())
        super().close()

    def detach(self) -> int:
        """Returns its descriptor, which is the caller's from here on."""
        _core.disown_descriptor(self.fileno())
        return super().detach()

    def __del__(self) -> None:
        self.close()
