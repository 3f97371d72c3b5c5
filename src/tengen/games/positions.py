"""Positions of random games: to check and to measure with, never to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.games.protocol import Game

__all__ = ["random_positions"]


def random_positions(game: Game, num_rows: int, seed: int) -> NDArray[np.float32]:
    """Returns ``[num_rows, C, H, W]`` float32, every position of uniform random games.

    Args:
        game: The rules.
        num_rows: At least 1.
        seed: At least 0.
    """
    rng = _core.Rng(seed)
    rows: list[NDArray[np.float32]] = []
    while len(rows) < num_rows:
        state = game.new_state()
        while not state.is_terminal() and len(rows) < num_rows:
            rows.append(state.observation())
            legal = state.legal_actions()
            state.apply(legal[rng.below(len(legal))])
    return np.stack(rows)
