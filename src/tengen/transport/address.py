"""Addresses of servers that other hosts may reach, and the rule of loopback."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass

from tengen.errors import UsageError

__all__ = ["NetAddress", "is_loopback", "is_net", "keep_alive"]

_SCHEME = "tcp://"
_GONE_S = 25.0


@dataclass(frozen=True)
class NetAddress:
    """Where a server listens: a host's name or number, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> NetAddress:
        """Reads ``HOST:PORT``, with or without ``tcp://``; IPv6 in brackets.

        Raises:
            UsageError: The text is no address.
        """
        host, colon, port = text.removeprefix(_SCHEME).rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(
                f"address ({text}) must be HOST:PORT; name both, as in 127.0.0.1:7070"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}{host}:{self.port}"


def is_net(address: str | os.PathLike[str]) -> bool:
    """Tells an address from the folder of a server of this host."""
    return isinstance(address, str) and address.startswith(_SCHEME)


def is_loopback(host: str) -> bool:
    """Tells whether only this host reaches the number of a host."""
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def keep_alive(connection: socket.socket) -> None:
    """Sends small messages at once, and notices a host that is gone within 25 s.

    That is so for a connection on which nothing is said, and for one with bytes on
    their way, which the system would else send again for a quarter of an hour.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * _GONE_S)
        )
