"""The first words between a store's server and a client of its host: lines of JSON."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen.errors import RunError, UsageError

__all__ = ["SOCKET_NAME", "VERSION", "ask", "read_line", "send_line"]

VERSION = 1
SOCKET_NAME = "socket"
_MAX_LINE_BYTES = 64 << 20


def send_line(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Sends one message."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_line(connection: socket.socket) -> dict[str, Any] | None:
    """Reads one message, and not a byte behind it.

    Returns:
        The message; None where the other side ended.

    Raises:
        UsageError: It is no message.
        OSError: The connection broke, or stayed silent for its timeout.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        # A message has one line, so that what is there up to its end is its own.
        seen = connection.recv(65536, socket.MSG_PEEK)
        if not seen:
            return None
        end = seen.find(b"\n") + 1 or len(seen)
        line += connection.recv(end)
        if len(line) > _MAX_LINE_BYTES:
            raise UsageError(
                f"message ({len(line)} bytes) must be at most {_MAX_LINE_BYTES}; "
                f"send less at a time"
            )
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise UsageError(
            "message (no JSON object) must be one; speak to the store by tengen"
        )
    return message


def ask(directory: Path, message: Mapping[str, Any]) -> tuple[socket.socket, Any]:
    """Opens a connection to a store and asks one thing.

    Args:
        directory: The store's.
        message: What is asked.

    Returns:
        The connection, still open, and the answer.

    Raises:
        RunError: Nobody answers.
        UsageError: The store refused it.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(directory / SOCKET_NAME))
        send_line(connection, {"version": VERSION, **message})
        answer = read_line(connection)
    except OSError as error:
        connection.close()
        raise RunError(
            f"store ({directory}) does not answer: {error.strerror or error}; "
            f"start it, or name its folder"
        ) from error
    if answer is None or "error" in answer:
        connection.close()
        reason = f"store ({directory}) ended; start it again"
        raise UsageError(answer["error"] if answer else reason)
    return connection, answer["answer"]
