"""Self-play as alpha-zero-general publishes the method, to measure against.

Written from the method's description, not from its code: one game at a time; a tree in
dictionaries whose keys are the board's bytes; a recursive descent that turns the board
to the side to move at every step; one position a call of a torch network; numpy boards.
The tree is kept for the whole game. Source: Thakoor, Nair and Jhunjhunwala 2017,
"Learning to play Othello without human knowledge", and the project it describes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NumpyConnectFour", "RecursiveSearch", "play_game"]

Board = NDArray[np.int8]
"""``[6, 7]``: 0 empty, 1 and -1 the stones of the two players."""
Evaluate = Callable[[Board], tuple[NDArray[Any], float]]
"""Policy ``[7]``, a distribution, and value of a board seen by player 1, to move."""

HEIGHT, WIDTH = 6, 7
_DRAWN = 1e-4  # a result that is not 0, which means "goes on"


class NumpyConnectFour:
    """The rules over numpy boards; a board is always seen by player 1, to move."""

    def first_board(self) -> Board:
        """Returns the empty board."""
        return np.zeros((HEIGHT, WIDTH), np.int8)

    def legal(self, board: Board) -> NDArray[Any]:
        """Returns 1 for every column with room, ``[7]``."""
        return np.where(board[0] == 0, 1.0, 0.0)

    def after(self, board: Board, column: int) -> Board:
        """Returns the board after player 1's move, seen by the opponent."""
        board = board.copy()
        board[np.flatnonzero(board[:, column] == 0)[-1], column] = 1
        return -board

    def result(self, board: Board) -> float:
        """Returns 1 or -1 where player 1 or the other has won, 0 while it goes on."""
        for player in (1, -1):
            if self._has_four(board == player):
                return float(player)
        return 0.0 if (board[0] == 0).any() else _DRAWN

    def _has_four(self, stones: NDArray[np.bool_]) -> bool:
        across = stones[:, :-3] & stones[:, 1:-2] & stones[:, 2:-1] & stones[:, 3:]
        if across.any():
            return True
        down = stones[:-3] & stones[1:-2] & stones[2:-1] & stones[3:]
        if down.any():
            return True
        for s in (stones, stones[:, ::-1]):
            slope = s[:-3, :-3] & s[1:-2, 1:-2] & s[2:-1, 2:-1] & s[3:, 3:]
            if slope.any():
                return True
        return False


class RecursiveSearch:
    """The tree of one game.

    Args:
        rules: The game.
        evaluate: Called once a new position.
        cpuct: Weight of the prior.
    """

    def __init__(
        self, rules: NumpyConnectFour, evaluate: Evaluate, cpuct: float = 1.0
    ) -> None:
        self._rules = rules
        self._evaluate = evaluate
        self._cpuct = cpuct
        self._result: dict[bytes, float] = {}
        self._prior: dict[bytes, NDArray[Any]] = {}
        self._legal: dict[bytes, NDArray[Any]] = {}
        self._visits: dict[bytes, int] = {}
        self._edge_value: dict[tuple[bytes, int], float] = {}
        self._edge_visits: dict[tuple[bytes, int], int] = {}

    def policy(self, board: Board, num_simulations: int) -> NDArray[Any]:
        """Returns the shares of the visits of each column after some simulations."""
        for _ in range(num_simulations):
            self._simulate(board)
        key = board.tobytes()
        counts = np.array([self._edge_visits.get((key, a), 0) for a in range(WIDTH)])
        shares: NDArray[Any] = counts / counts.sum()
        return shares

    def _simulate(self, board: Board) -> float:
        """Makes one descent; returns the value for the player who moved here."""
        key = board.tobytes()
        if key not in self._result:
            self._result[key] = self._rules.result(board)
        if self._result[key] != 0:
            return -self._result[key]
        if key not in self._prior:
            prior, value = self._evaluate(board)
            legal = self._rules.legal(board)
            prior = prior * legal
            self._prior[key] = prior / prior.sum()
            self._legal[key] = legal
            self._visits[key] = 0
            return -value
        action = self._select(key)
        value = self._simulate(self._rules.after(board, action))
        edge = (key, action)
        count = self._edge_visits.get(edge, 0)
        mean = self._edge_value.get(edge, 0.0)
        self._edge_value[edge] = (count * mean + value) / (count + 1)
        self._edge_visits[edge] = count + 1
        self._visits[key] += 1
        return -value

    def _select(self, key: bytes) -> int:
        legal, prior = self._legal[key], self._prior[key]
        root = math.sqrt(self._visits[key] + 1e-8)
        best, best_score = -1, -math.inf
        for action in range(WIDTH):
            if not legal[action]:
                continue
            edge = (key, action)
            count = self._edge_visits.get(edge, 0)
            bonus = self._cpuct * prior[action] * root / (1 + count)
            score = self._edge_value.get(edge, 0.0) + bonus
            if score > best_score:
                best, best_score = action, score
        return best


def play_game(
    rules: NumpyConnectFour,
    evaluate: Evaluate,
    num_simulations: int,
    rng: np.random.Generator,
) -> list[tuple[Board, NDArray[Any], float]]:
    """Plays one game against itself; returns its rows: board, policy, result."""
    search = RecursiveSearch(rules, evaluate)
    board, rows = rules.first_board(), []
    while (result := rules.result(board)) == 0:
        policy = search.policy(board, num_simulations)
        rows.append((board, policy))
        board = rules.after(board, int(rng.choice(WIDTH, p=policy)))
    # The result is seen by who would move now; the last row was the other player's.
    return [
        (row, policy, -result if (len(rows) - i) % 2 else result)
        for i, (row, policy) in enumerate(rows)
    ]
