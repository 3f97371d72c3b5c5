"""Parses the rules in a gomoku game's name; formats and parses cells ``X,Y``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tengen.errors import UsageError
from tengen.games.registry import open_game

_NAME = re.compile(r"gomoku/([0-9]{1,3})(/exact)?")
_CELL = re.compile(r"\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*")


@dataclass(frozen=True)
class GomokuRules:
    """The rules of a game of gomoku."""

    size: int
    """Side length of the board, in cells."""
    exactly_five: bool
    """Whether a row of more than five stones does not win."""

    @property
    def text(self) -> str:
        """The winning rule in words."""
        return "exactly five win" if self.exactly_five else "five or more win"


def read_gomoku_name(name: str) -> GomokuRules | None:
    """Returns the rules that a game's name describes; None if it is not gomoku."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    try:
        game = open_game(name)
    except UsageError:
        return None
    return GomokuRules(game.height, found[2] is not None)


def read_cell(text: str, size: int) -> int | None:
    """Parses a cell ``X,Y``; returns its action, or None if it is not on the board.

    Args:
        text: The cell. X is the column from the left, Y the row from the top, from 0.
        size: Side length of the board.
    """
    found = _CELL.fullmatch(text)
    if found is None:
        return None
    x, y = int(found[1]), int(found[2])
    return y * size + x if x < size and y < size else None


def write_cell(action: int, size: int) -> str:
    """Returns the cell of an action as ``X,Y``; see ``read_cell``."""
    y, x = divmod(action, size)
    return f"{x},{y}"
