"""Messages between a server and a client: lines of JSON, bounded in bytes and time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from tengen import _core
from tengen.errors import RunError, UsageError

__all__ = [
    "NoAnswer",
    "ServiceFull",
    "answer_of",
    "error_answer",
    "read_line",
    "send_line",
]


class NoAnswer(RunError):
    """Nobody answers: the server has ended, or cannot be reached."""


class ServiceFull(NoAnswer):
    """Too many clients ask at once; one that waits a moment may be answered."""


# The client raises an error of the same kind as the server; an error of the core
# reaches it as it would reach a caller in the server's own process.
_ERRORS: dict[str, type[Exception]] = {
    "usage": UsageError,
    "full": ServiceFull,  # before its base class
    "run": RunError,
    "core": _core.CoreError,
}


def error_answer(error: Exception) -> dict[str, Any]:
    """Returns the answer that has `answer_of` raise an error of the same kind."""
    kinds = (kind for kind, one in _ERRORS.items() if isinstance(error, one))
    return {"error": str(error), "kind": next(kinds, "usage")}


def answer_of(message: Mapping[str, Any]) -> Any:
    """Returns the answer that a server's message holds, or raises the error.

    Raises:
        UsageError: Or what the server's error is: there is no answer.
    """
    if "error" in message:
        # A server of another version may tell no kind.
        kind = message.get("kind")
        error = _ERRORS.get(kind if isinstance(kind, str) else "", UsageError)
        raise error(" ".join(str(message["error"]).split()))
    if "answer" not in message:
        raise UsageError(
            "message (no answer) must be one; install the same tengen on both sides"
        )
    return message["answer"]


def send_line(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Sends one message."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_line(
    connection: socket.socket,
    until: float,
    max_bytes: int,
) -> dict[str, Any] | None:
    """Reads one message, and not a byte behind it.

    Args:
        connection: Where from.
        until: When the message must be there, by ``time.monotonic``. A message that has
            arrived by then is still read, as the reader may have been held up.
        max_bytes: Of the message.

    Returns:
        The message; None where the other side has closed the connection.

    Raises:
        UsageError: The line is no message, or is too long.
        OSError: The connection broke.
        TimeoutError: The message was not whole in time.
    """
    line = bytearray()
    num_bytes = 0
    while not line.endswith(b"\n"):
        left_s = until - time.monotonic()
        # A peer that sends on and on is not waited for.
        if num_bytes and left_s <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(max(0.001, left_s))
        # A message is one line, so that all bytes up to the line's end belong to it.
        seen = connection.recv(65536, socket.MSG_PEEK)
        if not seen:
            return None
        end = seen.find(b"\n") + 1 or len(seen)
        piece = connection.recv(end)
        num_bytes += len(piece)
        # A session that is resumed may send zero bytes before it is answered.
        line += piece if line else piece.lstrip(b"\0")
        # A peer that speaks another protocol may never end its line.
        if line and not line.startswith(b"{"):
            break
        if num_bytes > max_bytes:
            raise UsageError(
                f"message ({num_bytes} bytes) must be at most {max_bytes}; "
                f"send less at a time"
            )
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise UsageError("message (no JSON object) must be one; connect by tengen")
    return message
