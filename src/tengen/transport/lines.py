"""Messages between server and client as lines of JSON, with limits on size and time."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from tengen import _core
from tengen.errors import RunError, UsageError


class NoAnswer(RunError):
    """The server does not respond, because it has ended or cannot be reached."""


class ServiceFull(NoAnswer):
    """The server has too many concurrent clients; a later retry may succeed."""


# Maps the kind of an error message to an exception class. The client raises the class
# of exception that the server raised.
_ERRORS: dict[str, type[Exception]] = {
    "usage": UsageError,
    "full": ServiceFull,  # before RunError, its base class
    "run": RunError,
    "core": _core.CoreError,
}


def error_answer(error: Exception) -> dict[str, Any]:
    """Returns a message that makes `answer_of` raise an error of the same kind."""
    kinds = (kind for kind, one in _ERRORS.items() if isinstance(error, one))
    return {"error": str(error), "kind": next(kinds, "usage")}


def answer_of(message: Mapping[str, Any]) -> Any:
    """Returns the response in a server's message.

    Raises:
        UsageError: The message has no response, or an error of this class or of an
            unknown kind.
        ServiceFull, RunError, CoreError: The message has an error of this class.
    """
    if "error" in message:
        # A server of a different version may omit the kind.
        kind = message.get("kind")
        error = _ERRORS.get(kind if isinstance(kind, str) else "", UsageError)
        raise error(" ".join(str(message["error"]).split()))
    if "answer" not in message:
        raise UsageError(
            "message (no answer) must have an answer; install one version on both sides"
        )
    return message["answer"]


def send_line(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Sends ``message`` as one line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_line(
    connection: socket.socket,
    until: float,
    max_bytes: int,
) -> dict[str, Any] | None:
    """Reads one message without consuming any bytes after it.

    Args:
        connection: The connection to read from.
        until: The deadline in ``time.monotonic`` seconds. A message that has already
            arrived is read even after the deadline.
        max_bytes: The maximum size of the message.

    Returns:
        The message, or None if the other side has closed the connection.

    Raises:
        UsageError: The line is not a message, or too long.
        OSError: The connection is broken.
        TimeoutError: The message was incomplete at the deadline.
    """
    line = bytearray()
    num_bytes = 0
    while not line.endswith(b"\n"):
        left_s = until - time.monotonic()
        # The deadline also holds for a peer that keeps sending bytes.
        if num_bytes and left_s <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(max(0.001, left_s))
        # Peek first, so that only bytes up to the end of the line are consumed.
        seen = connection.recv(65536, socket.MSG_PEEK)
        if not seen:
            return None
        end = seen.find(b"\n") + 1 or len(seen)
        piece = connection.recv(end)
        num_bytes += len(piece)
        # Skip the zero bytes that a resumed session may send before the response.
        line += piece if line else piece.lstrip(b"\0")
        # Stop if this is not JSON, because such a peer may never end its line.
        if line and not line.startswith(b"{"):
            break
        if num_bytes > max_bytes:
            raise UsageError(
                f"message ({num_bytes} bytes) must be at most {max_bytes}; send less "
                "at once"
            )
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise UsageError("message (no JSON object) is invalid; connect with tengen")
    return message
