"""Positions of self-play: to calibrate and to check on, not to learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.store.segment import SegmentReader
from tengen.store.window import GameWindow
from tengen.store.window_config import WindowConfig

__all__ = ["sample_positions"]


def sample_positions(
    game: str, experience: Path, generation: int, num_positions: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]] | None:
    """Returns positions of one generation's sealed games, drawn evenly by row.

    A pure function of the arguments and the segments. Rows are drawn with replacement.

    Args:
        game: The name, as `tengen.games.make` takes it.
        experience: ``RUN/experience``.
        generation: Which one.
        num_positions: At least 1; M is the lower of this and the generation's rows.
        seed: Of the draw.

    Returns:
        Planes ``[M, C, H, W]`` float32 under random symmetries and the legal actions
        ``[M, A]``; None where the generation has no rows.

    Raises:
        UsageError: A segment is of a newer schema, or the game is unknown.
        RunError: A segment is damaged.
    """
    parts = []
    num_rows = 0
    for path in sorted(experience.glob(f"*/*/{generation:06d}.npz")):
        with SegmentReader(path) as reader:
            parts.append((str(path.parent), reader.game_columns()))
            num_rows += int(reader.meta["num_rows"])
    if num_rows == 0:
        return None
    window = GameWindow(game, experience, WindowConfig(min_rows=num_rows), seed)
    for writer, columns in parts:
        window.insert(writer, generation, columns)
    rows = window.sample(min(num_positions, num_rows)).columns
    return rows["planes"], rows["legal"].astype(bool)
