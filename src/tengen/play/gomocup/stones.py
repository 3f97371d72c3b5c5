"""The board of a Gomocup session: the stones of both sides, as a manager places them.

A manager may send the stones of a position in any order, and remove any of them. In
the core's games moves alternate, and a complete row ends the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.games import Game, State
from tengen.games.gomoku import write_cell
from tengen.play.gomocup.protocol import GomocupError

__all__ = ["OTHER", "OWN", "Owner", "Stones"]

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
