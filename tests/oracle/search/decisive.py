"""What the rules decide: core/games/decisive.h in readable form."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen.games.protocol import State
from tests.oracle.search.tree import Proof

# The maximum number of threats that a position's search for a forced win tries.
MOST_THREATS = 30


class Near(NamedTuple):
    """What the rules decide within two moves."""

    actions: list[int]
    proof: Proof = Proof.UNKNOWN
    is_open: bool = False
    """Whether no rule leaves out a legal action."""


def decisive_actions(state: State, kind: str) -> tuple[list[int], Proof]:
    """Returns the actions that a search considers, and what they prove.

    Args:
        state: A position that is not terminal.
        kind: The first part of the game's name, ``gomoku`` for gomoku/9. Games other
            than those below have no decisive moves.
    """
    if kind not in ("tictactoe", "connect4", "gomoku"):
        return state.legal_actions(), Proof.UNKNOWN
    near = near_actions(state, kind)
    if near.proof == Proof.UNKNOWN and kind != "tictactoe":
        first = forced_win(state, kind, near, [MOST_THREATS])
        if first is not None:
            return [first], Proof.WIN
    return near.actions, near.proof


def near_actions(state: State, kind: str) -> Near:
    """As ``decisive_actions``, two moves deep."""
    legal = state.legal_actions()
    if kind == "gomoku":
        return _gomoku(state, legal)
    won = [action for action in legal if wins(state, action)]
    if won:
        return Near(won, Proof.WIN)
    saving = [action for action in legal if not loses(state, action)]
    return Near(saving) if saving else Near(legal, Proof.LOSS)


def forced_win(state: State, kind: str, near: Near, num_left: list[int]) -> int | None:
    """Returns the first move of a win by threats, tried depth-first in order.

    Args:
        state: A position that is not decided within two moves.
        kind: As for ``decisive_actions``.
        near: The result of ``near_actions``.
        num_left: The number of threats that may be tried, changed in place.
    """
    legal = state.legal_actions()
    if kind == "gomoku":
        legal = _cells(state.observation()[1], legal, 3)
    for action in legal:
        if not near.is_open and action not in near.actions:
            continue
        after = played(state, action)
        if after.is_terminal():
            continue
        reply = near_actions(after, kind)
        if reply.proof == Proof.LOSS:
            return action
        if reply.is_open or len(reply.actions) != 1 or reply.proof == Proof.WIN:
            continue
        num_left[0] -= 1
        if num_left[0] < 0:
            return None
        after = played(after, reply.actions[0])
        if after.is_terminal():
            continue
        then = near_actions(after, kind)
        if then.proof == Proof.WIN:
            return action
        if then.proof == Proof.LOSS:
            continue
        if forced_win(after, kind, then, num_left) is not None:
            return action
    return None


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


def _gomoku(state: State, legal: list[int]) -> Near:
    """As above, for 225 cells: looks only at cells beside four stones in a row."""
    _, own, opponent, *_ = state.observation()
    won = [cell for cell in _cells(own, legal, 4) if wins(state, cell)]
    if won:
        return Near(won, Proof.WIN)
    threats = []
    for cell in _cells(opponent, legal, 4):
        # A stone takes only its own cell from the opponent.
        other = next((action for action in legal if action != cell), None)
        if other is not None and wins(played(state, other), cell):
            threats.append(cell)
    if not threats:
        return Near(legal, is_open=True)
    # A lost side takes one of the cells, too.
    return Near(threats, Proof.LOSS if len(threats) > 1 else Proof.UNKNOWN)


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
