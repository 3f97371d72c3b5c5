"""Positions of self-play games, to calibrate and check models, not to learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.experience.games.files import experience_files
from tengen.experience.games.segment import SegmentReader
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.rows.window_draw import WindowDraw

__all__ = ["sample_positions"]


def sample_positions(
    game: str, experience: Path, generation: int, num_positions: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]] | None:
    """Returns positions of one generation's sealed games, drawn evenly by row.

    A pure function of the arguments and the segments. No two positions are equal, so
    that some can be held out from the others.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        experience: ``RUN/experience``.
        generation: The generation.
        num_positions: Rows to draw, with replacement, at least 1.
        seed: Seed of the draw.

    Returns:
        Planes ``[M, C, H, W]`` float32 under random symmetries and the legal actions
        ``[M, A]``, M at most ``num_positions``; None where the generation has no rows.

    Raises:
        UsageError: A segment is of a newer schema, or the game is unknown.
        RunError: A segment is damaged.
    """
    rows = DerivedRows(game, auxiliary=False)
    for path in experience_files(experience, "npz"):
        if int(path.stem) != generation:
            continue
        with SegmentReader(path) as reader:
            rows.add(reader.game_columns())
    if rows.num_rows == 0:
        return None
    draw = WindowDraw(
        lease=0, num_rows=num_positions, first_row=0, size=rows.num_rows, place=None
    )
    keys, symmetries = rows.draw(seed, draw)
    columns = rows.derive(keys, symmetries)
    planes, legal = columns["planes"], columns["legal"].astype(bool)
    # A row drawn twice has two symmetries, and opening positions occur in many rows.
    first_of_row = np.unique(keys, return_index=True)[1]
    different = {planes[index].tobytes(): index for index in np.sort(first_of_row)}
    chosen = list(different.values())
    return planes[chosen], legal[chosen]
