"""The definition of a service: its dialect, request handlers and limits."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tengen.config import shown
from tengen.errors import UsageError

Message = Mapping[str, Any]
"""A JSON object. In a request, the key ``ask`` is the kind of request."""

RESUME = "resume"
"""The kind of request that resumes a session of a killed server; exempt from limits."""

_MIN_TOKEN = 16


@dataclass(frozen=True)
class Dialect:
    """The protocol that a server and its clients must agree on.

    Attributes:
        name: The name of the service, also for error messages.
        version: The version of the messages and of the session protocol.
        max_question_bytes: The maximum size of a request. The default has space for
            16,384 integers of 20 digits with floats of 24 characters.
    """

    name: str
    version: int
    max_question_bytes: int = 1 << 20

    def token(self, given: str | None) -> str | None:
        """Returns ``given``, or the token in the environment if ``given`` is None.

        Raises:
            UsageError: The token is shorter than 16 or longer than 1024 bytes.
        """
        token = os.environ.get(self.token_variable) if given is None else given
        if token is not None and not _MIN_TOKEN <= len(token.encode()) <= 1024:
            raise UsageError(
                f"token ({len(token.encode())} bytes) must have {_MIN_TOKEN} to 1024; "
                "create one with secrets.token_hex()"
            )
        return token

    @property
    def token_variable(self) -> str:
        """The environment variable that holds the service's token."""
        return f"TENGEN_{self.name.upper()}_TOKEN"

    def stamp(self, message: Message) -> dict[str, Any]:
        """Returns a message with the dialect's name and version added."""
        return {"service": self.name, "version": self.version, **message}

    def check(self, message: Message) -> None:
        """Raises UsageError if the message is for a different service or version."""
        service = message.get("service", self.name)
        if service != self.name:
            raise UsageError(
                f"service ({shown(service)}) must be {self.name}, the service at this "
                "address; correct the address"
            )
        if message.get("version") != self.version:
            raise UsageError(
                f"version ({shown(message.get('version'))}) must be {self.version}, "
                f"that of the {self.name}; install the same version on both sides"
            )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on a server's clients, in addition to the limit on file descriptors."""

    hello_s: float = 10.0
    """Time limit for the TLS handshake and the greeting, in seconds."""
    question_s: float = 10.0
    """Time limit for receiving a request, and for sending the response, in seconds."""
    linger_s: float = 2.0
    """Seconds for which a rejected client may still read the error message."""
    max_hellos: int = 256
    """The maximum number of clients that are connecting concurrently."""
    max_connections: int = 1024
    """The maximum number of concurrent requests, each handled by a thread."""
    max_sessions: int = 4096
    """The maximum number of sessions, each of which may have a thread."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """The functions that a server calls for its clients, from many threads.

    A TengenError or CoreError that a function raises is raised in the client. Any other
    exception becomes a UsageError, because a malformed message is its likely cause.

    Attributes:
        dialect: The service's dialect.
        questions: Maps a kind of request to a function that takes the message and
            returns the response, a JSON value.
        sessions: Maps a kind of request to a function that takes the connection and the
            message, opens a session on a duplicate of the connection, which the session
            must close, and returns the response. A session must not send anything
            before its client does, because the client first waits for the response.
        num_sessions: Returns the number of sessions, which the server limits.
        is_closing: Returns whether the service rejects further requests.
        limits: The limits that the server enforces.
    """

    dialect: Dialect
    questions: Mapping[str, Callable[[Message], Any]] = field(default_factory=dict)
    sessions: Mapping[str, Callable[[socket.socket, Message], Any]] = field(
        default_factory=dict
    )
    num_sessions: Callable[[], int] = lambda: 0
    is_closing: Callable[[], bool] = lambda: False
    limits: Limits = Limits()
