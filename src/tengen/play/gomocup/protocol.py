"""The Gomocup protocol as text: one command a line, one line as the answer.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Command", "GomocupError", "UnknownCommandError", "one_line", "parse_line"]

# Managers read into buffers of some hundreds of bytes.
_MAX_CHARACTERS = 400
_NOT_SHOWN = re.compile(r"[^\x20-\x7e]+")


class GomocupError(Exception):
    """What a command is answered by ``ERROR``; the text is the message."""


class UnknownCommandError(GomocupError):
    """What a line is answered by ``UNKNOWN``."""


@dataclass(frozen=True)
class Command:
    """One line of a manager."""

    name: str
    """The command, in capitals."""
    text: str
    """What follows it."""


def parse_line(line: bytes) -> Command | None:
    """Returns the command of a line, None where it is empty.

    What is no visible ASCII counts as a space; managers end lines by CR LF.
    """
    name, _, text = _visible(line.decode(errors="replace")).partition(" ")
    return Command(name.upper(), text.strip()) if name else None


def one_line(text: str) -> str:
    """Returns a text as a line that any manager can read, its end included."""
    shown = _visible(text)
    if len(shown) > _MAX_CHARACTERS:
        shown = shown[: _MAX_CHARACTERS - 3] + "..."
    return shown + "\n"


def _visible(text: str) -> str:
    return _NOT_SHOWN.sub(" ", text).strip()
