"""What the rules decide within two moves: core/games/decisive.h in readable form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen.games.protocol import State
from tests.oracle.search.tree import Proof


def decisive_actions(state: State, kind: str) -> tuple[list[int], Proof]:
    """Returns the actions that a search considers, and what they prove.

    Args:
        state: A position that is not terminal.
        kind: The first part of the game's name, ``gomoku`` for gomoku/9. Games other
            than those below have no decisive moves.
    """
    legal = state.legal_actions()
    if kind not in ("tictactoe", "connect4", "gomoku"):
        return legal, Proof.UNKNOWN
    if kind == "gomoku":
        return _gomoku(state, legal)
    won = [action for action in legal if wins(state, action)]
    if won:
        return won, Proof.WIN
    saving = [action for action in legal if not loses(state, action)]
    return (saving, Proof.UNKNOWN) if saving else (legal, Proof.LOSS)


def wins(state: State, action: int) -> bool:
    """Returns whether ``action`` ends the game with a win for its player."""
    after = played(state, action)
    return after.is_terminal() and after.returns()[state.to_play] > 0


def loses(state: State, action: int) -> bool:
    """Returns whether the opponent can win at once after ``action``."""
    after = played(state, action)
    return any(wins(after, reply) for reply in after.legal_actions())


def played(state: State, action: int) -> State:
    after = state.clone()
    after.apply(action)
    return after


def _gomoku(state: State, legal: list[int]) -> tuple[list[int], Proof]:
    """As above, for 225 cells: looks only at cells beside four stones in a row."""
    _, own, opponent, *_ = state.observation()
    won = [cell for cell in _fifth_cells(own, legal) if wins(state, cell)]
    if won:
        return won, Proof.WIN
    # A stone takes only its own cell from the opponent.
    threats = []
    for cell in _fifth_cells(opponent, legal):
        other = next((action for action in legal if action != cell), None)
        if other is not None and wins(played(state, other), cell):
            threats.append(cell)
    # A lost side takes one of the cells, too.
    return threats or legal, Proof.LOSS if len(threats) > 1 else Proof.UNKNOWN


def _fifth_cells(stones: NDArray[np.float32], legal: list[int]) -> list[int]:
    """Returns the legal cells that complete five cells in a line, at least."""
    size = len(stones)
    wide = np.pad(stones, 4)
    found = set()
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        shifted = [
            np.roll(wide, (-k * down, -k * right), (0, 1)) * (k + 1) for k in range(5)
        ]
        counts = np.stack(shifted)
        fours = (counts > 0).sum(0) == 4
        missing = 15 - counts.sum(0)  # 1 + the place of the empty cell in the line
        for row, column in np.argwhere(fours):
            k = int(missing[row, column]) - 1
            cell = (row + k * down - 4, column + k * right - 4)
            if 0 <= cell[0] < size and 0 <= cell[1] < size:
                found.add(int(cell[0] * size + cell[1]))
    return sorted(found & set(legal))
