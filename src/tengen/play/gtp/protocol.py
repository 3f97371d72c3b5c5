"""GTP as text: one command a line, one answer with an empty line behind it.

Source: Farneback 2002, "Specification of the Go Text Protocol, version 2", 2 and 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = [
    "INTERRUPT",
    "Command",
    "GtpError",
    "answer_text",
    "first_line",
    "parse_line",
]

INTERRUPT = b"# interrupt"
"""The comment by which GoGui ends a search of a program that knows gogui-interrupt."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class GtpError(Exception):
    """What a command is answered by ``?``; the text is the answer."""


@dataclass(frozen=True)
class Command:
    """One line of a controller."""

    id: str
    """The number before the command, empty where there is none."""
    name: str
    """The command; empty where the line is a number alone."""
    words: tuple[str, ...]
    """What follows."""
    text: str = field(default="", compare=False)
    """The same as it stands in the line, blanks in it included."""


def parse_line(line: bytes) -> Command | None:
    """Returns the command of a line, None where it is empty or a comment.

    Control characters are dropped, tabs are spaces, and ``#`` begins a comment.
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
    """Returns how an answer begins: ``=`` or ``?``, and the id."""
    return f"{'=' if ok else '?'}{command.id}"


def answer_text(command: Command, text: str, *, ok: bool = True) -> str:
    """Returns a whole answer, its empty line included.

    Args:
        command: What is answered.
        text: In lines; empty ones, which would end the answer, are left out.
        ok: Whether it is no error.
    """
    lines = [_CONTROL.sub("", line) for line in text.splitlines() if line.strip()]
    body = "\n".join(lines)
    return f"{first_line(command, ok=ok)}{' ' if body else ''}{body}\n\n"
