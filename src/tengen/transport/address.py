"""Network addresses of servers, loopback checks, and TCP options."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass

from tengen.errors import UsageError

_SCHEME = "tcp://"
_GONE_S = 25.0


@dataclass(frozen=True)
class NetAddress:
    """A network address: a host name or IP address, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> NetAddress:
        """Parses ``HOST:PORT`` or ``tcp://HOST:PORT``; IPv6 hosts must be in brackets.

        Raises:
            UsageError: ``text`` is not an address.
        """
        host, colon, port = text.removeprefix(_SCHEME).rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(
                f"address ({text}) must be HOST:PORT; give both, as in 127.0.0.1:7070"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}{host}:{self.port}"


def is_net(address: str | os.PathLike[str]) -> bool:
    """Returns whether ``address`` is a network address and not a server's folder."""
    return isinstance(address, str) and address.startswith(_SCHEME)


def is_loopback(host: str) -> bool:
    """Returns whether an IP address is a loopback address."""
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def keep_alive(connection: socket.socket) -> None:
    """Disables Nagle's algorithm and makes TCP detect a lost host within 25 s.

    This holds for idle connections and for connections with unacknowledged bytes, which
    the system would otherwise retransmit for a quarter of an hour.
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
