"""The Gomocup protocol as text: a command is a line, and so is its answer.

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
    """A command failed; its answer is ``ERROR`` and the error's text."""


class UnknownCommandError(GomocupError):
    """A line is no known command; its answer is ``UNKNOWN``."""


@dataclass(frozen=True)
class Command:
    """A command line from a manager."""

    name: str
    """The command, in capitals."""
    text: str
    """The arguments."""


def parse_line(line: bytes) -> Command | None:
    """Returns the command of a line; None if it is empty.

    Everything but visible ASCII counts as a space. Managers end lines with CR LF.
    """
    name, _, text = _visible(line.decode(errors="replace")).partition(" ")
    return Command(name.upper(), text.strip()) if name else None


def one_line(text: str) -> str:
    """Returns a text as a line that any manager can read, with its line end."""
    shown = _visible(text)
    if len(shown) > _MAX_CHARACTERS:
        shown = shown[: _MAX_CHARACTERS - 3] + "..."
    return shown + "\n"


def _visible(text: str) -> str:
    return _NOT_SHOWN.sub(" ", text).strip()
