"""The first words between a store's server and a client: lines of JSON."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any

from tengen import _core
from tengen.errors import RunError, UsageError

__all__ = [
    "MAX_KEYS",
    "SOCKET_NAME",
    "VERSION",
    "NoAnswer",
    "StoreFull",
    "answer_s",
    "ask",
    "check_version",
    "closed",
    "command_request",
    "error_answer",
    "no_answer",
    "read_line",
    "replica_request",
    "resume_request",
    "sampler_request",
    "send_line",
    "tables_request",
    "wait_of",
    "writer_request",
]

VERSION = 6
SOCKET_NAME = "socket"
MAX_KEYS = 16384
"""Keys that one command may have; more go by several."""

# The longest are `MAX_KEYS` keys of 20 digits with priorities of 24: 0.8 MB.
_MAX_LINE_BYTES = 1 << 20
# The tables of a store, or a line for each of its sessions. Who asks trusts the store.
_MAX_ANSWER_BYTES = 64 << 20
# The server learns of a killed client within moments; then its name is free.
_WAIT_FOR_NAME_S = 5.0
# An answer may take so long, however little time the caller has: servers are busy.
_LEAST_ANSWER_S = 2.0


class NoAnswer(RunError):
    """Nobody answers: the store has ended, or cannot be reached."""


class StoreFull(NoAnswer):
    """Too many ask at once; who waits a moment may be answered."""


# What is raised where the answer comes, by the kind that it has there: what the core
# raised it raises for the client as for a caller in the store's own process.
_ERRORS: dict[str, type[Exception]] = {
    "usage": UsageError,
    "full": StoreFull,  # before what it is one of
    "run": RunError,
    "core": _core.CoreError,
}


def tables_request() -> dict[str, Any]:
    """Asks for the store's tables."""
    return {"ask": "tables"}


def writer_request(
    name: str, pool: int, timeout_s: float | None = None
) -> dict[str, Any]:
    """Asks for a session of a writer of a pool's steps."""
    wait_s = _WAIT_FOR_NAME_S if timeout_s is None else min(timeout_s, _WAIT_FOR_NAME_S)
    return {"ask": "writer", "name": name, "pool": pool, "wait_s": wait_s}


def wait_of(message: Mapping[str, Any]) -> float:
    """Returns how long a writer's name is waited for, by who asked, within bounds."""
    return min(max(0.0, float(message["wait_s"])), _WAIT_FOR_NAME_S)


def sampler_request(table: int, num_samples: int, num_ahead: int) -> dict[str, Any]:
    """Asks for a session of a sampler."""
    return {
        "ask": "sampler",
        "table": table,
        "num_samples": num_samples,
        "num_ahead": num_ahead,
    }


def replica_request(name: str, place: tuple[int, int, int] | None) -> dict[str, Any]:
    """Asks for a session of a replica, behind the last checkpoint that it has."""
    return {"ask": "replica", "name": name, "place": place}


def resume_request(session: int) -> dict[str, Any]:
    """Asks to go on with a session, of a server that was killed."""
    return {"ask": "resume", "id": session}


def command_request(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Asks for one of the rare commands."""
    return {"ask": "command", "name": name, "arguments": dict(arguments)}


def check_version(message: Mapping[str, Any]) -> None:
    """Refuses a client of another version."""
    if message.get("version") != VERSION:
        raise UsageError(
            f"version ({message.get('version')}) must be {VERSION}, the "
            f"store's; install the same tengen on both sides"
        )


def error_answer(error: Exception) -> dict[str, Any]:
    """Returns the answer that has `ask` raise an error of the same kind."""
    kinds = (kind for kind, one in _ERRORS.items() if isinstance(error, one))
    return {"error": str(error), "kind": next(kinds, "usage")}


def send_line(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Sends one message."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_line(
    connection: socket.socket,
    until: float,
    max_bytes: int = _MAX_LINE_BYTES,
) -> dict[str, Any] | None:
    """Reads one message, and not a byte behind it.

    Args:
        connection: Where from.
        until: When it must be there, by ``time.monotonic``. What lies there by then is
            still read, as whoever reads may have stood still.
        max_bytes: Of the message.

    Returns:
        The message; None where the other side ended.

    Raises:
        UsageError: It is no message.
        OSError: The connection broke.
        TimeoutError: The message was not whole in time.
    """
    line = bytearray()
    num_bytes = 0
    while not line.endswith(b"\n"):
        left_s = until - time.monotonic()
        # One that sends on and on would never be waited for.
        if num_bytes and left_s <= 0:
            raise TimeoutError("timed out")
        connection.settimeout(max(0.001, left_s))
        # A message has one line, so that what is there up to its end is its own.
        seen = connection.recv(65536, socket.MSG_PEEK)
        if not seen:
            return None
        end = seen.find(b"\n") + 1 or len(seen)
        piece = connection.recv(end)
        num_bytes += len(piece)
        # A session that goes on may ring before it is answered.
        line += piece if line else piece.lstrip(b"\0")
        # Who speaks another language need not come to an end of a line.
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
        raise UsageError(
            "message (no JSON object) must be one; speak to the store by tengen"
        )
    return message


def answer_s(message: Mapping[str, Any], patience_s: float) -> float:
    """Returns how long an answer is waited for, of a store that may stand still.

    Args:
        message: What is asked.
        patience_s: The caller's.
    """
    return max(patience_s, _LEAST_ANSWER_S) + float(message.get("wait_s", 0.0))


def ask(
    connection: socket.socket, store: str, message: Mapping[str, Any], until: float
) -> Any:
    """Asks one thing, and closes the connection where there is no answer.

    Args:
        connection: To a store; still open when this returns, and blocking.
        store: Its name, for errors.
        message: What is asked.
        until: When the answer must be there, by ``time.monotonic``.

    Raises:
        NoAnswer: Nobody answers, or too many ask.
        RunError: The store has failed, or closes.
        UsageError: The store refused it.
        CoreError: Its core did.
    """
    try:
        connection.settimeout(max(0.001, until - time.monotonic()))
        send_line(connection, {"version": VERSION, **message})
        answer = read_line(connection, until, _MAX_ANSWER_BYTES)
        connection.settimeout(None)
    except OSError as error:
        connection.close()
        raise no_answer(store, error) from error
    if answer is None:
        connection.close()
        raise NoAnswer(f"store ({store}) ended; start it again")
    if "error" in answer:
        connection.close()
        # One of another version may tell no kind.
        raise _ERRORS.get(answer.get("kind", ""), UsageError)(answer["error"])
    return answer["answer"]


def no_answer(store: str, error: OSError) -> NoAnswer:
    """Returns what to say of a store that cannot be reached."""
    return NoAnswer(
        f"store ({store}) does not answer: {error.strerror or error}; start it, or "
        f"correct its address"
    )


def closed(store: str) -> UsageError:
    """Returns what to say to who asks by a connection that was closed."""
    return UsageError(f"store ({store}, closed) must be open; connect again")
