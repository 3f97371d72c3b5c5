"""Lines of the Gomocup protocol, and the stones that they place.

A command is a line, and so is its answer. A manager may send the stones of a position
in any order, and remove any of them. In the core's games moves alternate, and a
complete row ends the game.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tengen.games import Game, State
from tengen.games.gomoku import write_cell

__all__ = [
    "OTHER",
    "OWN",
    "Command",
    "GomocupError",
    "Owner",
    "Stones",
    "UnknownCommandError",
    "one_line",
    "parse_line",
]

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


Owner = Literal[0, 1]
OWN: Owner = 0
"""A stone of the engine."""
OTHER: Owner = 1
"""A stone of the other side."""


@dataclass(frozen=True)
class Stones:
    """Stones in the order in which they were placed. Immutable."""

    placed: tuple[tuple[Owner, int], ...] = ()
    """(owner, cell) of each stone; no cell twice."""

    def __len__(self) -> int:
        """Returns the number of stones."""
        return len(self.placed)

    def with_stone(self, owner: Owner, action: int, size: int) -> Stones:
        """Returns the stones with one more.

        Raises:
            GomocupError: The cell is taken.
        """
        if any(taken == action for _, taken in self.placed):
            raise GomocupError(f"cell ({write_cell(action, size)}) must be empty")
        return Stones((*self.placed, (owner, action)))

    def without(self, action: int, size: int) -> Stones:
        """Returns the stones without the one on a cell.

        Raises:
            GomocupError: The cell is empty.
        """
        left = tuple(stone for stone in self.placed if stone[1] != action)
        if len(left) == len(self.placed):
            raise GomocupError(f"cell ({write_cell(action, size)}) must have a stone")
        return Stones(left)

    def moves(self, game: Game, to_move: Owner = OWN) -> list[int]:
        """Returns moves that lead to this position with a side to move.

        The moves keep the order of the stones, as far as the sides alternate and no
        move ends the game.

        Raises:
            GomocupError: It is not that side's turn, or the game is over.
        """
        waits = OTHER if to_move == OWN else OWN
        cells = {
            owner: [cell for whose, cell in self.placed if whose == owner]
            for owner in (to_move, waits)
        }
        ahead = len(cells[waits]) - len(cells[to_move])
        if ahead not in (0, 1):
            raise GomocupError(
                f"stones ({len(cells[OWN])} own, {len(cells[OTHER])} of the other "
                f"side) must be as many of both, or one more of the other side"
            )
        movers = (to_move, waits) if ahead == 0 else (waits, to_move)
        state, moves = game.new_state(), list[int]()
        for ply in range(len(self.placed)):
            left = cells[movers[ply % 2]]
            state, action = _next(state, left)
            left.remove(action)
            moves.append(action)
        return moves


def _next(state: State, cells: list[int]) -> tuple[State, int]:
    """Returns the position after the first cell that does not end the game, and it."""
    for action in cells:
        after = state.clone()
        after.apply(action)
        if not after.is_terminal():
            return after, action
    raise GomocupError("the game on this board is over; RESTART begins another")
