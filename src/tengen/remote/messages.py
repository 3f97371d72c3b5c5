"""The messages between a run's service and its mirrors, and their checks.

A question is one line of JSON; a piece of a file is base64 in it. Both sides treat
everything that arrives as data: file names are made from numbers and short words, sizes
are bounded, and no peer sends a path.
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
    "decoded",
    "encoded",
    "log_name",
    "number_in",
    "word_in",
]

RUN = Dialect("run", version=2)
"""The service of a run directory; its token is TENGEN_RUN_TOKEN."""

MIRROR_ROLES = ("selfplay", "actor")
"""The roles that can work on a mirror."""

PIECE_BYTES = 512 << 10
"""The most bytes of a file in one message; a question is at most 1 MiB."""
MAX_FILE_BYTES = 4 << 30
"""The largest journal, segment or file of a model."""

MOST_AHEAD = 1024
"""The most generation numbers that a mirror has claimed and not yet sealed."""

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
    """Returns a string of a message.

    Raises:
        UsageError: It is missing, or does not match the pattern of that name.
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
    """Returns an integer of a message.

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
    """Returns bytes as a string for a message."""
    return base64.b64encode(data).decode()


def decoded(message: Mapping[str, Any]) -> bytes:
    """Returns the bytes in the ``data`` of a message.

    Raises:
        UsageError: They are missing, more than a piece, or not base64.
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
    """Returns the file in ``logs`` of one process on a mirror.

    Args:
        role: The role of the process.
        index: Which actor or self-play writer it is.
        events: The number of its event file.
    """
    return f"{role}-{index}-{events}.log"
