"""Positions of random games: to check and to measure with, never to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.games.protocol import Game

__all__ = ["mean_random_plies", "random_positions"]


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


def mean_random_plies(game: Game, num_games: int, seed: int) -> float:
    """Returns the mean length of uniform random games, in plies.

    Args:
        game: The rules.
        num_games: At least 1.
        seed: At least 0.
    """
    rng = _core.Rng(seed)
    num_plies = 0
    for _ in range(num_games):
        state = game.new_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            state.apply(legal[rng.below(len(legal))])
            num_plies += 1
    return num_plies / num_games
