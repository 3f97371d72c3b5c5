"""Straightforward reference implementations of the native games.

They use lists of lists, scan the complete board after every move, and share nothing
with the core. Symmetries are numpy rotations and reflections, not tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EMPTY = "."
STONES = "XO"
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


class SlowGame:
    """A game of stones in a row on a board; subclasses restrict where stones may go.

    Attributes:
        board: Rows of characters, row 0 at the top.
        last: (row, column) of the last move.
    """

    name: str
    height: int
    width: int
    length: int
    exact = False

    def __init__(self) -> None:
        self.board = [[EMPTY] * self.width for _ in range(self.height)]
        self.ply = 0
        self.last: tuple[int, int] | None = None

    @property
    def to_play(self) -> int:
        return self.ply % 2

    def cell_of(self, action: int) -> tuple[int, int] | None:
        """Returns the cell where ``action`` puts a stone, or None if it is illegal."""
        row, column = divmod(action, self.width)
        return (row, column) if self.board[row][column] == EMPTY else None

    def num_actions(self) -> int:
        return self.height * self.width

    def legal_actions(self) -> list[int]:
        if self.is_terminal():
            return []
        return [a for a in range(self.num_actions()) if self.cell_of(a) is not None]

    def apply(self, action: int) -> None:
        cell = self.cell_of(action)
        assert cell is not None
        self.board[cell[0]][cell[1]] = STONES[self.to_play]
        self.last = cell
        self.ply += 1

    def stone(self, row: int, column: int) -> str:
        inside = 0 <= row < self.height and 0 <= column < self.width
        return self.board[row][column] if inside else ""

    def winner(self) -> int | None:
        """Returns the winner, or None, by checking every run from its first cell."""
        for row in range(self.height):
            for column in range(self.width):
                stone = self.board[row][column]
                if stone == EMPTY:
                    continue
                for down, right in DIRECTIONS:
                    if self.stone(row - down, column - right) == stone:
                        continue
                    run = 0
                    while self.stone(row + run * down, column + run * right) == stone:
                        run += 1
                    if run == self.length or (run > self.length and not self.exact):
                        return STONES.index(stone)
        return None

    def is_terminal(self) -> bool:
        full = all(EMPTY not in row for row in self.board)
        return full or self.winner() is not None

    def returns(self) -> tuple[int, int]:
        winner = self.winner()
        return (0, 0) if winner is None else ((1, -1), (-1, 1))[winner]

    def stone_planes(self) -> list[NDArray[np.float32]]:
        cells = np.array(self.board)
        own, opponent = STONES[self.to_play], STONES[1 - self.to_play]
        return [
            np.ones(cells.shape, np.float32),
            (cells == own).astype(np.float32),
            (cells == opponent).astype(np.float32),
        ]

    def first_to_move_plane(self) -> NDArray[np.float32]:
        value = 1 if self.to_play == 0 else 0
        return np.full((self.height, self.width), value, np.float32)

    def planes(self) -> NDArray[np.float32]:
        raise NotImplementedError

    def symmetric(self, planes: NDArray[np.float32], symmetry: int) -> NDArray:
        """Applies a symmetry of the square as a numpy rotation or reflection."""
        axes = (1, 2)
        return [
            planes,
            np.flip(planes, 2),
            np.flip(planes, 1),
            np.rot90(planes, 2, axes),
            np.transpose(planes, (0, 2, 1)),
            np.rot90(planes, 3, axes),
            np.rot90(planes, 1, axes),
            np.rot90(np.transpose(planes, (0, 2, 1)), 2, axes),
        ][symmetry]


class SlowTicTacToe(SlowGame):
    name, height, width, length = "tictactoe", 3, 3, 3

    def planes(self) -> NDArray[np.float32]:
        return np.stack(self.stone_planes())


class SlowConnect4(SlowGame):
    name, height, width, length = "connect4", 6, 7, 4

    def num_actions(self) -> int:
        return self.width

    def cell_of(self, action: int) -> tuple[int, int] | None:
        for row in reversed(range(self.height)):
            if self.board[row][action] == EMPTY:
                return row, action
        return None

    def planes(self) -> NDArray[np.float32]:
        return np.stack([*self.stone_planes(), self.first_to_move_plane()])


class SlowGomoku(SlowGame):
    length = 5

    def __init__(self, size: int, exact: bool = False) -> None:
        self.name = f"gomoku/{size}" + ("/exact" if exact else "")
        self.height = self.width = size
        self.exact = exact
        super().__init__()

    def planes(self) -> NDArray[np.float32]:
        last = np.zeros((self.height, self.width), np.float32)
        if self.last is not None:
            last[self.last] = 1
        return np.stack([*self.stone_planes(), last, self.first_to_move_plane()])


def make_slow(name: str) -> SlowGame:
    """Returns the slow game named ``name``, as for `tengen.games.make`."""
    if name == "tictactoe":
        return SlowTicTacToe()
    if name == "connect4":
        return SlowConnect4()
    game, size, *rule = name.split("/")
    if game == "go":
        from slow_go import SlowGo

        return SlowGo(name)
    return SlowGomoku(int(size), rule == ["exact"])
