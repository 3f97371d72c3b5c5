"""What the rules decide: core/games/decisive.h in readable form."""

from __future__ import annotations

import functools

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
    _, own, *_ = state.observation()
    won = [cell for cell in _cells(own, legal, 4) if wins(state, cell)]
    if won:
        return won, Proof.WIN
    threats = _threats(state)
    if len(threats) < 2:
        first = _forced_win(state, threats, [MAX_FOURS])
        if first is not None:
            return [first], Proof.WIN
    # A lost side takes one of the cells, too.
    return threats or legal, Proof.LOSS if len(threats) > 1 else Proof.UNKNOWN


# The maximum number of fours that a position's search for a forced win tries.
MAX_FOURS = 30


def _threats(state: State) -> list[int]:
    """Returns the cells with which the opponent could win at once."""
    legal = state.legal_actions()
    _, _, opponent, *_ = state.observation()
    found = []
    for cell in _cells(opponent, legal, 4):
        # A stone takes only its own cell from the opponent.
        other = next((action for action in legal if action != cell), None)
        if other is not None and wins(played(state, other), cell):
            found.append(cell)
    return found


def _forced_win(state: State, threats: list[int], num_left: list[int]) -> int | None:
    """Returns the first move of a win of fours only, tried depth-first in order.

    Args:
        state: A position in which nobody but the opponent wins at once.
        threats: The cells on which the opponent does, at most one.
        num_left: The number of fours that may be tried, changed in place.
    """
    _, own, *_ = state.observation()
    for cell in _cells(own, state.legal_actions(), 3):
        if threats and cell not in threats:
            continue
        num_left[0] -= 1
        if num_left[0] < 0:
            return None
        after = played(state, cell)
        replies = _threats(after)
        if len(replies) > 1:
            return cell
        if not replies:
            continue
        after = played(after, replies[0])
        if after.is_terminal() or len(answers := _threats(after)) > 1:
            continue
        if _forced_win(after, answers, num_left) is not None:
            return cell
    return None


def _cells(stones: NDArray[np.float32], legal: list[int], num_stones: int) -> list[int]:
    """Returns the empty cells of all lines of five with so many stones, and no others.

    Args:
        stones: The stones of one side, ``[H, W]``.
        legal: The empty cells.
        num_stones: Number of stones in a line; its other cells are empty.
    """
    lines = _lines(len(stones))
    empty = np.zeros(stones.size, bool)
    empty[legal] = True
    own = (stones.flat[lines] == 1).sum(1) == num_stones
    free = empty[lines].sum(1) == 5 - num_stones
    found = lines[own & free]
    return [int(cell) for cell in np.unique(found[empty[found]])]


@functools.cache
def _lines(size: int) -> NDArray[np.intp]:
    """Returns the cells of all lines of five on a board, ``[N, 5]``."""
    steps = ((0, 1), (1, 0), (1, 1), (1, -1))
    lines = [
        [(y + k * down, x + k * right) for k in range(5)]
        for y, x in np.ndindex(size, size)
        for down, right in steps
        if y + 4 * down < size and 0 <= x + 4 * right < size
    ]
    return np.array([[y * size + x for y, x in line] for line in lines], np.intp)
