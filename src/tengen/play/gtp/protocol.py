"""GTP as text: a command is a line, and an answer ends with an empty line.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 2 and 3.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

__all__ = [
    "INTERRUPT",
    "PLAYERS",
    "Command",
    "GtpError",
    "answer_text",
    "first_line",
    "is_whole",
    "parse_line",
    "read_number",
    "read_player",
    "read_whole",
    "words_of",
]

INTERRUPT = b"# interrupt"
"""The comment with which GoGui ends a search, if the program knows gogui-interrupt."""

PLAYERS = {"b": 0, "black": 0, "w": 1, "white": 1}
"""Black and White, by the words for them in small letters."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class GtpError(Exception):
    """A command failed; its answer is ``?`` and the error's text."""


@dataclass(frozen=True)
class Command:
    """A command line from a controller."""

    id: str
    """The number before the command; empty if there is none."""
    name: str
    """The command; empty if the line is only a number."""
    words: tuple[str, ...]
    """The arguments."""
    text: str = field(default="", compare=False)
    """The arguments as one text, with their blanks."""


def parse_line(line: bytes) -> Command | None:
    """Returns the command of a line; None if it is empty or a comment.

    Control characters are dropped, tabs count as spaces, and ``#`` begins a comment.
    """
    text = _CONTROL.sub("", line.decode(errors="replace")).partition("#")[0]
    words = text.split()
    if not words:
        return None
    has_id = re.fullmatch("[0-9]{1,18}", words[0]) is not None
    number = words.pop(0) if has_id else ""
    parts = text.split(maxsplit=1 + has_id)
    rest = parts[1 + has_id].rstrip() if len(parts) > 1 + has_id else ""
    return Command(number, words[0] if words else "", tuple(words[1:]), rest)


def first_line(command: Command, *, ok: bool) -> str:
    """Returns the beginning of an answer: ``=`` or ``?``, and the id."""
    return f"{'=' if ok else '?'}{command.id}"


def answer_text(command: Command, text: str, *, ok: bool = True) -> str:
    """Returns a complete answer with its empty line.

    Args:
        command: The command.
        text: The answer's lines; empty lines, which would end the answer, are dropped.
        ok: Whether the command succeeded.
    """
    lines = [_CONTROL.sub("", line) for line in text.splitlines() if line.strip()]
    body = "\n".join(lines)
    return f"{first_line(command, ok=ok)}{' ' if body else ''}{body}\n\n"


def read_player(word: str) -> int:
    """Returns 0 for Black, 1 for White.

    Raises:
        GtpError: The word is not a colour.
    """
    player = PLAYERS.get(word.lower())
    if player is None:
        raise GtpError("invalid color")
    return player


def is_whole(word: str) -> bool:
    """Whether a word is a whole number of at most nine digits."""
    return word.isascii() and word.isdecimal() and len(word) < 10


def read_whole(word: str) -> int:
    """Returns a whole number of at most nine digits.

    Raises:
        GtpError: The word is not such a number.
    """
    if not is_whole(word):
        raise GtpError("syntax error")
    return int(word)


def read_number(word: str) -> float:
    """Returns a number, which may be infinite.

    Raises:
        GtpError: The word is not such a number.
    """
    try:
        # Python's own forms, as 1_000, are not of the protocol.
        number = float(word) if word.isascii() and "_" not in word else math.nan
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise GtpError("syntax error")
    return number


def words_of(command: Command, count: int) -> tuple[str, ...]:
    """Returns the arguments of a command that needs at least ``count`` of them.

    Raises:
        GtpError: There are fewer.
    """
    if len(command.words) < count:
        raise GtpError("syntax error")
    return command.words
