"""Planes and symmetries for games written in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tengen.games.protocol import Planes

__all__ = ["stone_planes", "transform_cell", "transform_planes"]


def stone_planes(board: ArrayLike, to_play: int) -> Planes:
    """Returns planes that suit most games with stones on a board.

    Plane 0 is ones (the board), 1 the side to move's stones, 2 the opponent's,
    3 ones if the first player is to move.

    Args:
        board: ``[H, W]`` integers: 0 empty, 1 the first player's, 2 the second's.
        to_play: 0 the first player, 1 the second.

    Returns:
        ``[4, H, W] float32``.
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
    """Returns where a symmetry of the square takes a cell.

    Symmetry 0 is the identity; otherwise, in this order, bit 2 swaps rows and
    columns, bit 1 turns the rows over, bit 0 turns the columns over. The same
    numbering as core/games/symmetry.h.

    Args:
        cell: row * size + column.
        size: Rows, and columns, of the board.
        symmetry: 0 to 7.
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
    """Returns ``[..., N, N]`` planes under a symmetry of the square; a view.

    The counterpart of `transform_cell`: the entry of a cell moves to where that
    function takes the cell.
    """
    if symmetry & 4:
        planes = planes.swapaxes(-1, -2)
    if symmetry & 2:
        planes = planes[..., ::-1, :]
    if symmetry & 1:
        planes = planes[..., ::-1]
    return planes
