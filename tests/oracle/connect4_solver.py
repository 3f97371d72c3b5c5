"""Computes exact values of Connect Four positions with connect4_solver.cc.

The C++ solver is compiled at first use. Moves are columns, 0 to 6, from the empty
board. Two definitions of a best move: by result (won, drawn, lost), as in
`optimal_moves`, or by score, which also prefers the fastest win and the slowest loss.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

WIDTH = 7
HEIGHT = 6
_SOURCE = Path(__file__).with_suffix(".cc")
_FULL = -100


def is_available() -> bool:
    """Returns whether a compiler for the solver is installed."""
    return shutil.which("g++") is not None


def solve(moves: list[int]) -> int:
    """Returns the value to play after ``moves``: 1 won, 0 drawn, -1 lost.

    Raises:
        ValueError: A move cannot be played, or the game is finished.
    """
    return _value_and_optimal(moves)[0]


def optimal_moves(moves: list[int]) -> list[int]:
    """Returns the columns that preserve the value, in increasing order.

    Raises:
        ValueError: A move cannot be played, or the game is finished.
    """
    return _value_and_optimal(moves)[1]


def scores(moves: list[int]) -> dict[int, int]:
    """Returns the exact score of each legal column for the side to move.

    A score is 22 minus the winner's stones at the end of the game: positive if the
    side to move wins, higher for a faster win, 0 for a draw.

    Raises:
        ValueError: A move cannot be played, or the game is finished.
    """
    found = (ctypes.c_int * WIDTH)()
    _refuse(moves, _library().connect4_scores(bytes(moves), len(moves), found))
    return {column: score for column, score in enumerate(found) if score != _FULL}


def random_positions(
    count: int, min_ply: int = 8, max_ply: int = 30, seed: int = 0
) -> Iterator[list[int]]:
    """Yields unfinished positions, as move lists, with a legal move that is a mistake.

    The number of moves is uniform in [min_ply, max_ply]. Random games of that length
    are rejected if they have ended or if every legal move is optimal.

    Args:
        count: Number of positions to yield.
        min_ply: Minimum number of moves.
        max_ply: Maximum number of moves.
        seed: The same seed yields the same positions.
    """
    rng = random.Random(seed)
    for _ in range(count):
        num_plies = rng.randint(min_ply, max_ply)
        moves = _random_moves(rng, num_plies)
        while not _can_err(moves):
            moves = _random_moves(rng, num_plies)
        yield moves


def _random_moves(rng: random.Random, num_plies: int) -> list[int]:
    """Returns random columns, none of them full; ignores wins along the way."""
    moves: list[int] = []
    while len(moves) < num_plies:
        column = rng.randrange(WIDTH)
        if moves.count(column) < HEIGHT:
            moves.append(column)
    return moves


def _can_err(moves: list[int]) -> bool:
    """Returns whether the game is unfinished and some legal column is not optimal."""
    try:
        best = optimal_moves(moves)
    except ValueError:
        return False
    return len(best) < sum(moves.count(column) < HEIGHT for column in range(WIDTH))


def _value_and_optimal(moves: list[int]) -> tuple[int, list[int]]:
    value, optimal = ctypes.c_int(), ctypes.c_int()
    _refuse(
        moves,
        _library().connect4_optimal(
            bytes(moves), len(moves), ctypes.byref(value), ctypes.byref(optimal)
        ),
    )
    return value.value, [c for c in range(WIDTH) if optimal.value >> c & 1]


def _refuse(moves: list[int], wrong: int) -> None:
    """Raises ValueError if ``wrong``, the index of an illegal move from 1, is not 0."""
    if wrong:
        raise ValueError(
            f"moves ({moves}) must be playable in an unfinished game; see move {wrong}"
        )


@cache
def _library() -> ctypes.CDLL:
    """Builds the solver once per version, in the user's temporary directory."""
    version = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"tengen-oracle-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"connect4_solver-{version}.so"
    if not library.exists():
        partial = library.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++20", "-O2", "-march=native", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, str(_SOURCE), "-o", str(partial)], check=True)
        partial.replace(library)
    return ctypes.CDLL(str(library))
