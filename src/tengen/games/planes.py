"""Planes and symmetries for games written in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tengen.games.protocol import Planes


def stone_planes(board: ArrayLike, to_play: int) -> Planes:
    """Returns observation planes that suit most games of stones on a board.

    Plane 0 is ones (the board), plane 1 the stones of the side to move, plane 2 the
    opponent's stones, and plane 3 is ones if the first player is to move.

    Args:
        board: ``[H, W]`` integers: 0 empty, 1 first player, 2 second player.
        to_play: The side to move: 0 first player, 1 second player.

    Returns:
        The planes, ``[4, H, W]`` float32.
    """
    cells = np.asarray(board)
    own, opponent = (1, 2) if to_play == 0 else (2, 1)
    planes = np.empty((4, *cells.shape), np.float32)
    planes[0] = 1
    planes[1] = cells == own
    planes[2] = cells == opponent
    planes[3] = to_play == 0
    return planes


def transform_cell(cell: int, size: int, symmetry: int) -> int:
    """Returns the image of a cell under a symmetry of the square.

    The bits of the symmetry's number select operations, applied in this order: bit 2
    transposes the board, bit 1 reverses the order of rows, bit 0 reverses the order of
    columns. Symmetry 0 is the identity. core/games/symmetry.h has the same numbering.

    Args:
        cell: The cell's index, row * size + column.
        size: Side length of the board.
        symmetry: The number of the symmetry, 0 to 7.
    """
    row, column = divmod(cell, size)
    if symmetry & 4:
        row, column = column, row
    if symmetry & 2:
        row = size - 1 - row
    if symmetry & 1:
        column = size - 1 - column
    return row * size + column


def transform_planes(planes: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """Returns a view of planes ``[..., N, N]``, transformed by a symmetry.

    Each cell's entry moves to the cell that `transform_cell` returns.
    """
    if symmetry & 4:
        planes = planes.swapaxes(-1, -2)
    if symmetry & 2:
        planes = planes[..., ::-1, :]
    if symmetry & 1:
        planes = planes[..., ::-1]
    return planes
