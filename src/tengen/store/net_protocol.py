"""Addresses, tokens and the greeting between a store and its clients on other hosts."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen.errors import UsageError
from tengen.store.host_protocol import VERSION, check_version, read_line, send_line

__all__ = [
    "SCHEME",
    "TOKEN_VARIABLE",
    "NetAddress",
    "check_hello",
    "is_loopback",
    "keep_alive",
    "send_hello",
    "token_of",
]

SCHEME = "tcp://"
TOKEN_VARIABLE = "TENGEN_STORE_TOKEN"
_MIN_TOKEN = 16
_MAX_HELLO_BYTES = 4096


@dataclass(frozen=True)
class NetAddress:
    """Where a store listens: a host's name or number, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> NetAddress:
        """Reads ``HOST:PORT``, with or without ``tcp://``; IPv6 in brackets.

        Raises:
            UsageError: It is none.
        """
        host, colon, port = text.removeprefix(SCHEME).rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(
                f"address ({text}) must be HOST:PORT; name both, as in 127.0.0.1:7070"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}"


def token_of(token: str | None) -> str | None:
    """Returns the token to use: the one given, or that of the environment.

    Raises:
        UsageError: It is too short to be a secret.
    """
    token = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    if token is not None and not _MIN_TOKEN <= len(token.encode()) <= 1024:
        raise UsageError(
            f"token ({len(token.encode())} bytes) must have {_MIN_TOKEN} to 1024; make "
            f"one by secrets.token_hex()"
        )
    return token


def is_loopback(host: str) -> bool:
    """Tells whether only this host reaches the number of a host."""
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def keep_alive(connection: socket.socket) -> None:
    """Sends small messages at once, and notices a host that is gone within 25 s."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def send_hello(connection: socket.socket, token: str | None) -> None:
    """Sends what a server wants to know before it is asked anything."""
    hello: Mapping[str, Any] = {"version": VERSION, "token": token or ""}
    send_line(connection, hello)


def check_hello(connection: socket.socket, token: str | None, until: float) -> None:
    """Reads a client's first line.

    Args:
        connection: The client's.
        token: What it must know; None: nothing.
        until: When the line must be there, by ``time.monotonic``.

    Raises:
        UsageError: It is of another version, or does not know the token.
        OSError: It broke off, or took too long.
    """
    hello = read_line(connection, until, _MAX_HELLO_BYTES)
    if hello is None:
        raise ConnectionResetError
    check_version(hello)
    given = str(hello.get("token", "")).encode()
    if token is not None and not hmac.compare_digest(given, token.encode()):
        raise UsageError(
            "token (not shown) must be the store's; pass it by token or by the "
            f"environment's {TOKEN_VARIABLE}"
        )
