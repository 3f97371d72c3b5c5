"""The messages between a run's service and its mirrors, their validation and client.

A request is one line of JSON, in which chunks of files are encoded as base64. Neither
side trusts received data: file names are built from numbers and short words, sizes are
bounded, and no message contains a path.
"""

from __future__ import annotations

import base64
import binascii
import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen import __version__
from tengen.errors import UsageError
from tengen.transport import Client, Dialect, NoAnswer

RUN = Dialect("run", version=2)
"""The protocol of a run's service. The token is in ``TENGEN_RUN_TOKEN``."""

MIRROR_ROLES = ("selfplay", "actor")
"""The roles that can work on a mirror."""

PIECE_BYTES = 512 << 10
"""The maximum number of file bytes in one message. A request has at most 1 MiB."""
MAX_FILE_BYTES = 4 << 30
"""The maximum size of a journal, a segment or a model file."""

MOST_AHEAD = 1024
"""The maximum number of generations that a mirror has claimed and not yet sealed."""

PYTHON = ".".join(platform.python_version_tuple()[:2])
"""The Python version of this process, without the patch number."""

_WORDS = {
    "mirror": re.compile("[0-9a-f]{32}"),
    "role": re.compile("|".join(MIRROR_ROLES)),
    "kind": re.compile("journal|segment|events|log"),
    "name": re.compile(r"[a-z0-9_]{1,32}(\.[a-z0-9_]{1,16}){1,2}"),
    "process": re.compile(r"[ -~]{1,200}"),
    "python": re.compile(r"[0-9]{1,4}\.[0-9]{1,4}"),
    "tengen": re.compile(r"[ -~]{1,60}"),
    "sha256": re.compile("[0-9a-f]{64}|"),
}


def word_in(message: Mapping[str, Any], name: str) -> str:
    """Returns the string field ``name`` of a message.

    Raises:
        UsageError: The field is missing, or does not match the pattern for ``name``.
    """
    value = message.get(name)
    if not isinstance(value, str) or not _WORDS[name].fullmatch(value):
        raise UsageError(
            f"message, its {name} ({str(value)[:80]!r}) must match "
            f"{_WORDS[name].pattern}; install the same tengen on both sides"
        )
    return value


def number_in(
    message: Mapping[str, Any], name: str, most: int = 10**9, least: int = 0
) -> int:
    """Returns the integer field ``name`` of a message.

    Raises:
        UsageError: The field is missing, or is not in ``least`` to ``most``.
    """
    value = message.get(name)
    if type(value) is not int or not least <= value <= most:
        raise UsageError(
            f"message, its {name} ({str(value)[:40]}) must be a whole number from "
            f"{least} to {most}; install the same tengen on both sides"
        )
    return value


def encoded(data: bytes) -> str:
    """Returns ``data`` as a base64 string for a message."""
    return base64.b64encode(data).decode()


def decoded(message: Mapping[str, Any]) -> bytes:
    """Returns the bytes in the base64 field ``data`` of a message.

    Raises:
        UsageError: The field is missing, not base64, or longer than ``PIECE_BYTES``.
    """
    text = message.get("data")
    try:
        if isinstance(text, str) and len(text) <= 2 * PIECE_BYTES:
            data = base64.b64decode(text, validate=True)
            if len(data) <= PIECE_BYTES:
                return data
    except binascii.Error:
        pass
    raise UsageError(
        f"message, its data must be at most {PIECE_BYTES} bytes in base64; install "
        f"the same tengen on both sides"
    )


def log_name(role: str, index: int, events: int) -> str:
    """Returns the name of a mirror process's log file in the folder ``logs``.

    Args:
        role: The role of the process.
        index: The index of the actor or self-play writer.
        events: The ID of the event file of the process.
    """
    return f"{role}-{index}-{events}.log"


@dataclass(frozen=True, kw_only=True)
class Place:
    """The slot of a mirror in its run, with the index and IDs of its process."""

    run: str
    """The ID of the run."""
    index: int
    """The index of the self-play writer or actor that the mirror stands for."""
    incarnation: int
    """For self-play, the lowest incarnation that this process may use."""
    events: int
    """The ID of the event file that this process writes."""
    totals: tuple[int, int]
    """The actor's environment frames and finished episodes so far."""


class RunClient:
    """Client of a run's service. Thread-safe.

    Args:
        client: A client of the run's service.
        mirror: The ID of the mirror.

    Attributes:
        name: The service's address, for error messages.
        deadline_s: The ``time.monotonic`` time after which every request raises
            ``NoAnswer``; None for no deadline.
    """

    def __init__(self, client: Client, mirror: str) -> None:
        self._client = client
        self._mirror = mirror
        self._events = 0
        self.name = client.name
        self.deadline_s: float | None = None

    def join(
        self,
        role: str,
        index: int | None,
        run: str | None,
        *,
        is_vouched: bool = False,
        had_place: bool = False,
    ) -> Place | None:
        """Requests a slot in the run. The arguments are those of ``Members.join``.

        Returns:
            The slot, or None if the mirror has lost an earlier slot.

        Raises:
            TengenError: See ``ask``.
        """
        answer = self.ask(
            "join",
            role=role,
            index=index,
            run=run,
            is_vouched=is_vouched,
            had_place=had_place,
            process=f"{os.getpid()} on {platform.node()}",
            tengen=__version__,
            python=PYTHON,
        )
        if answer.get("given_up") is True:
            return None
        num_rows, num_episodes = answer["totals"]
        self._events = number_in(answer, "events")
        return Place(
            run=str(answer["run"]),
            index=number_in(answer, "index"),
            incarnation=number_in(answer, "incarnation"),
            events=self._events,
            totals=(int(num_rows), int(num_episodes)),
        )

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:
        """Sends a request and returns the response, whose values the caller must check.

        Args:
            what: The name of a request that ``RunService`` handles.
            fields: The fields of the request.

        Raises:
            NoAnswer: The service does not respond, or the deadline has passed.
            UsageError: The service rejects the request.
            RunError: The service fails, for example because its disk is full.
        """
        if self.deadline_s is not None and time.monotonic() > self.deadline_s:
            raise NoAnswer(f"{self.name} did not accept everything in time")
        who = {"mirror": self._mirror, "events": self._events}
        answer = self._client.ask({"ask": what, **who, **fields})
        if not isinstance(answer, dict):
            raise UsageError(
                f"answer ({what}) of {self.name} must be an object; install the same "
                f"tengen on both sides"
            )
        return answer
