"""Parses lines of the Gomocup protocol, and converts stones to moves.

Each command and each response is one line. A manager may send the stones of a position
in any order, and remove any stone. In the core's games, sides alternate and a row of
five ends the game, so ``Stones.moves`` orders the stones into a legal sequence of
moves.

Source: Lastovicka, "Gomoku AI protocol", https://plastovicka.github.io/protocl2en.htm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tengen.games import Game
from tengen.games.gomoku import write_cell

# Maximum length of a response: managers' buffers have a few hundred bytes.
_MAX_CHARACTERS = 400
# Maximum number of orders in which the stones of a position are played.
_MOST_ORDERS = 20
_NOT_SHOWN = re.compile(r"[^\x20-\x7e]+")


class GomocupError(Exception):
    """A Gomocup command failed; the response is ``ERROR`` and the error message."""


class UnknownCommandError(GomocupError):
    """The command is unknown; the response is ``UNKNOWN`` and the error message."""


@dataclass(frozen=True)
class Command:
    """A parsed command line from a tournament manager."""

    name: str
    """The command's name, in upper case."""
    text: str
    """The command's arguments, as one string."""


def parse_line(line: bytes) -> Command | None:
    """Parses a line; returns its command, or None if the line is empty.

    All characters except printable ASCII count as spaces, including the CR of CRLF.
    """
    name, _, text = _visible(line.decode(errors="replace")).partition(" ")
    return Command(name.upper(), text.strip()) if name else None


def one_line(text: str) -> str:
    """Returns ``text`` as one line of limited length, with a newline."""
    shown = _visible(text)
    if len(shown) > _MAX_CHARACTERS:
        shown = shown[: _MAX_CHARACTERS - 3] + "..."
    return shown + "\n"


def _visible(text: str) -> str:
    return _NOT_SHOWN.sub(" ", text).strip()


Owner = Literal[0, 1]
OWN: Owner = 0
"""The owner of the engine's stones."""
OTHER: Owner = 1
"""The owner of the opponent's stones."""


@dataclass(frozen=True)
class Stones:
    """The stones on a board, in the order in which they were placed. Immutable."""

    placed: tuple[tuple[Owner, int], ...] = ()
    """The owner and the cell of each stone; cells are distinct."""

    def __len__(self) -> int:
        """Returns the number of stones."""
        return len(self.placed)

    def with_stone(self, owner: Owner, action: int, size: int) -> Stones:
        """Returns these stones and one more stone.

        Raises:
            GomocupError: The cell is occupied.
        """
        if any(taken == action for _, taken in self.placed):
            raise GomocupError(f"cell ({write_cell(action, size)}) must be empty")
        return Stones((*self.placed, (owner, action)))

    def without(self, action: int, size: int) -> Stones:
        """Returns these stones without the stone on a cell.

        Raises:
            GomocupError: The cell is empty.
        """
        left = tuple(stone for stone in self.placed if stone[1] != action)
        if len(left) == len(self.placed):
            raise GomocupError(f"cell ({write_cell(action, size)}) must have a stone")
        return Stones(left)

    def moves(self, game: Game, to_move: Owner = OWN) -> list[int]:
        """Returns a legal sequence of moves to this position.

        The moves keep the order of the stones, except where the sides would not
        alternate or a move would end the game early. After the moves it is the turn of
        ``to_move``.

        Raises:
            GomocupError: The numbers of stones do not make it the turn of ``to_move``,
                or the game has ended.
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
                "side) must be equal in number, or one more of the other side"
            )
        movers = (to_move, waits) if ahead == 0 else (waits, to_move)
        for _ in range(_MOST_ORDERS):
            moves, stuck = _played(game, [cells[owner] for owner in movers])
            if not stuck:
                return moves
            # Six in a row do not win by the exact rule, unless five of them come first:
            # the sixth must join the others, so the stones at the ends come early.
            owner = movers[len(moves) % 2]
            cells[owner] = [*stuck, *(c for c in cells[owner] if c not in stuck)]
        raise GomocupError("the game on this board is over; RESTART starts another")


def _played(game: Game, cells: list[list[int]]) -> tuple[list[int], list[int]]:
    """Plays the stones of both sides in turn, if they do not end the game.

    Args:
        game: The game.
        cells: The cells of the side that moves first, then those of the other side.

    Returns:
        The moves, and the stones of the side to move that all end the game; the second
        list is empty if all stones were played.
    """
    left = [list(of_side) for of_side in cells]
    state, moves = game.new_state(), list[int]()
    for ply in range(sum(map(len, cells))):
        mine = left[ply % 2]
        for action in mine:
            after = state.clone()
            after.apply(action)
            if not after.is_terminal():
                break
        else:
            return moves, mine
        state = after
        mine.remove(action)
        moves.append(action)
    return moves, []
