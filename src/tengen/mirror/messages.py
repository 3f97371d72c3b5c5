"""What a run's service and its mirrors say to each other, and how it is checked.

A question is one line of JSON; a piece of a file is base64 in it. Whatever comes in is
data: names are rebuilt from numbers and short words, sizes are bounded, and nothing
that a peer sends is a path.
"""

from __future__ import annotations

import base64
import binascii
import platform
import re
from collections.abc import Mapping
from typing import Any

from tengen.errors import UsageError
from tengen.transport import Dialect

__all__ = [
    "MAX_FILE_BYTES",
    "MIRROR_ROLES",
    "MOST_AHEAD",
    "PIECE_BYTES",
    "PYTHON",
    "RUN",
    "Growing",
    "decoded",
    "encoded",
    "number_in",
    "word_in",
]

RUN = Dialect("run", version=1)
"""The service of a run directory; its token is TENGEN_RUN_TOKEN."""

MIRROR_ROLES = ("selfplay", "actor")
"""Roles that work on a mirror."""

PIECE_BYTES = 512 << 10
"""Of a file in one message; a question may have a MiB."""
MAX_FILE_BYTES = 4 << 30
"""Of a journal, a segment or a model's file."""

MOST_AHEAD = 1024
"""Generations that a mirror has the numbers of and that are not at the host."""

PYTHON = ".".join(platform.python_version_tuple()[:2])
"""This process's, without its patch number."""

_WORDS = {
    "mirror": re.compile("[0-9a-f]{32}"),
    "role": re.compile("|".join(MIRROR_ROLES)),
    "kind": re.compile("journal|events|log"),
    "name": re.compile(r"[a-z0-9_]{1,32}(\.[a-z0-9_]{1,16}){1,2}"),
    "process": re.compile(r"[ -~]{1,200}"),
    "python": re.compile(r"[0-9]{1,4}\.[0-9]{1,4}"),
    "tengen": re.compile(r"[ -~]{1,60}"),
    "sha256": re.compile("[0-9a-f]{64}|"),
}


class Growing:
    """The kinds of files that only grow, which are sent as they do."""

    JOURNAL = "journal"
    EVENTS = "events"
    LOG = "log"


def word_in(message: Mapping[str, Any], name: str) -> str:
    """Returns a text of a message.

    Raises:
        UsageError: It is missing, or not what a text of that name may be.
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
    """Returns a whole number of a message.

    Raises:
        UsageError: It is missing, or out of its range.
    """
    value = message.get(name)
    if type(value) is not int or not least <= value <= most:
        raise UsageError(
            f"message, its {name} ({str(value)[:40]}) must be a whole number from "
            f"{least} to {most}; install the same tengen on both sides"
        )
    return value


def encoded(data: bytes) -> str:
    """Returns bytes as a text of a message."""
    return base64.b64encode(data).decode()


def decoded(message: Mapping[str, Any], name: str = "data") -> bytes:
    """Returns the bytes of a message.

    Raises:
        UsageError: They are missing, too many, or not base64.
    """
    text = message.get(name)
    try:
        if isinstance(text, str) and len(text) <= 2 * PIECE_BYTES:
            return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    raise UsageError(
        f"message, its {name} must be at most {PIECE_BYTES} bytes in base64; install "
        f"the same tengen on both sides"
    )
