"""Creates positions: after given moves, or from random games.

Random games are for checks and measurements, never for training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.games.protocol import Game, State


def position_after(game: Game, moves: Iterable[int]) -> State:
    """Returns the position after ``moves`` from the start of a game.

    Raises:
        CoreError: A move is not legal.
    """
    state = game.new_state()
    for action in moves:
        state.apply(action)
    return state


def random_positions(game: Game, num_rows: int, seed: int) -> NDArray[np.float32]:
    """Returns the planes of positions of random games, ``[num_rows, C, H, W]`` float32.

    Args:
        game: The game to play.
        num_rows: Number of positions to return, at least 1.
        seed: Seed of the games, at least 0.
    """
    rng = _core.Rng(seed)
    rows: list[NDArray[np.float32]] = []
    while len(rows) < num_rows:
        for state in _random_game(game, rng):
            rows.append(state.observation())
            if len(rows) == num_rows:
                break
    return np.stack(rows)


def mean_random_plies(game: Game, num_games: int, seed: int) -> float:
    """Returns the mean length of uniformly random games, in plies.

    Args:
        game: The game to play.
        num_games: Number of games to play, at least 1.
        seed: Seed of the games, at least 0.
    """
    rng = _core.Rng(seed)
    lengths = (sum(1 for _ in _random_game(game, rng)) for _ in range(num_games))
    return sum(lengths) / num_games


def _random_game(game: Game, rng: _core.Rng) -> Iterator[State]:
    """Yields the position before each move of a uniformly random game."""
    state = game.new_state()
    while not state.is_terminal():
        yield state
        legal = state.legal_actions()
        state.apply(legal[rng.below(len(legal))])
