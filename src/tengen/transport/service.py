"""What a service is to the transport: its dialect, and what it may be asked."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tengen.config import shown
from tengen.errors import UsageError

__all__ = ["RESUME", "Dialect", "Limits", "Message", "Service"]

Message = Mapping[str, Any]
"""A JSON object; what is asked is its ``ask``."""

RESUME = "resume"
"""Asks to go on with a session of a server that was killed; it is not counted again."""

_MIN_TOKEN = 16


@dataclass(frozen=True)
class Dialect:
    """What a server and its clients must agree on.

    Attributes:
        name: The service's, as it stands in errors.
        version: Of its messages, and of what its sessions speak.
        max_question_bytes: The longest question that the server reads. By default
            16,384 integers of 20 digits with floats of 24 fit.
    """

    name: str
    version: int
    max_question_bytes: int = 1 << 20

    def token(self, given: str | None) -> str | None:
        """Returns the token to use: the one given, or that of the environment.

        Raises:
            UsageError: The token is too short to be a secret.
        """
        token = os.environ.get(self.token_variable) if given is None else given
        if token is not None and not _MIN_TOKEN <= len(token.encode()) <= 1024:
            raise UsageError(
                f"token ({len(token.encode())} bytes) must have {_MIN_TOKEN} to 1024; "
                f"make one by secrets.token_hex()"
            )
        return token

    @property
    def token_variable(self) -> str:
        """The environment variable that holds the service's token."""
        return f"TENGEN_{self.name.upper()}_TOKEN"

    def stamp(self, message: Message) -> dict[str, Any]:
        """Returns a message that tells which dialect it is in."""
        return {"service": self.name, "version": self.version, **message}

    def check(self, message: Message) -> None:
        """Raises UsageError for a message in another dialect."""
        service = message.get("service", self.name)
        if service != self.name:
            raise UsageError(
                f"service ({shown(service)}) must be {self.name}, which is served "
                f"here; correct the address"
            )
        if message.get("version") != self.version:
            raise UsageError(
                f"version ({shown(message.get('version'))}) must be {self.version}, "
                f"the {self.name}'s; install the same tengen on both sides"
            )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the clients of a server may take of it, beside its descriptors."""

    hello_s: float = 10.0
    """Seconds for a greeting, encryption included."""
    question_s: float = 10.0
    """Seconds for a question to be there, and for its answer to be taken."""
    linger_s: float = 2.0
    """Seconds for which a client that was refused may still read why."""
    max_hellos: int = 256
    """Clients that greet at once."""
    max_connections: int = 1024
    """Questions that are asked and answered at once, each by a thread."""
    max_sessions: int = 4096
    """Sessions, each of which may be a thread of the service."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """What a server does for its clients. The functions are called by many threads.

    A function may raise; the client gets the error. One that raises neither a
    TengenError nor a CoreError has the message refused.

    Attributes:
        dialect: The service's.
        questions: By what is asked, a function that takes the message and returns the
            answer, a JSON value.
        sessions: By what is asked, a function that takes the connection and the
            message, opens a session on a duplicate of the connection, which is the
            session's to close, and returns the answer. A session sends nothing before
            its client does, who waits for the answer first.
        num_sessions: Returns how many sessions there are; the server bounds them.
        is_closing: Returns whether the service takes no more questions.
        limits: What clients may take; the server holds them to it.
    """

    dialect: Dialect
    questions: Mapping[str, Callable[[Message], Any]] = field(default_factory=dict)
    sessions: Mapping[str, Callable[[socket.socket, Message], Any]] = field(
        default_factory=dict
    )
    num_sessions: Callable[[], int] = lambda: 0
    is_closing: Callable[[], bool] = lambda: False
    limits: Limits = Limits()
