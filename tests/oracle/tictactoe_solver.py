"""The exact value of every tic-tac-toe position, by minimax over the slow rules."""

from __future__ import annotations

from functools import cache

LINES = (
    (0, 1, 2),
    (3, 4, 5),
    (6, 7, 8),
    (0, 3, 6),
    (1, 4, 7),
    (2, 5, 8),
    (0, 4, 8),
    (2, 4, 6),
)


def solve(moves: list[int]) -> int:
    """Returns the value to play after ``moves``: 1 won, 0 drawn, -1 lost."""
    return _value(_board(moves))


def optimal_moves(moves: list[int]) -> list[int]:
    """Returns the optimal moves in increasing order; none if the game has ended."""
    board = _board(moves)
    if _is_finished(board):
        return []
    values = {cell: -_value(_after(board, cell)) for cell in _empty(board)}
    return [cell for cell, value in values.items() if value == max(values.values())]


def _board(moves: list[int]) -> str:
    board = "." * 9
    for move in moves:
        assert board[move] == "."
        assert not _is_finished(board)
        board = _after(board, move)
    return board


def _empty(board: str) -> list[int]:
    return [cell for cell in range(9) if board[cell] == "."]


def _after(board: str, cell: int) -> str:
    stone = "XO"[(9 - board.count(".")) % 2]
    return board[:cell] + stone + board[cell + 1 :]


def _has_line(board: str) -> bool:
    return any(
        board[a] != "." and board[a] == board[b] == board[c] for a, b, c in LINES
    )


def _is_finished(board: str) -> bool:
    return _has_line(board) or "." not in board


@cache
def _value(board: str) -> int:
    if _has_line(board):
        return -1  # the side that just moved completed the line
    if "." not in board:
        return 0
    return max(-_value(_after(board, cell)) for cell in _empty(board))
