"""A pass over generations: which rows it has, and in which order they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core

__all__ = ["GenerationPass", "chosen_games", "sampled_rows"]

_DRAWS_OF_PASS = 4096
"""Draws that a pass may make: two of each generation, and its order."""


class GenerationPass(NamedTuple):
    """What a pass is made of; with the games, its rows follow from it."""

    number: int
    """The number of the pass in the run, from 0."""
    generation: int
    """The newest of its generations."""
    num_segments: int
    """Segments of the manifest whose games count, the first."""

    def order(
        self, seed: int, offset: int, num_rows: int, size: int, num_symmetries: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Returns which of its rows come at a place, with a symmetry each.

        Args:
            seed: Of the run.
            offset: Rows that came before.
            num_rows: How many.
            size: Rows of the pass.
            num_symmetries: Of the game.
        """
        return _core.draw_rows_of_pass(
            seed=seed,
            number=self.number * _DRAWS_OF_PASS,
            offset=offset,
            num_rows=num_rows,
            first_row=0,
            size=size,
            num_symmetries=num_symmetries,
        )


def chosen_games(
    seed: int, number: int, age: int, num_games: int, num_wanted: int
) -> NDArray[np.int64]:
    """Returns which games of a generation a pass has, drawn anew in each pass.

    Args:
        seed: Of the run.
        number: Of the pass.
        age: Of the generation, 0 the newest.
        num_games: That the generation has.
        num_wanted: At most so many are drawn.

    Returns:
        ``[G] int64``, places among the generation's games, each once.
    """
    return _drawn(seed, number, 1 + 2 * age, num_games, num_wanted)


def sampled_rows(
    seed: int, number: int, age: int, share: float, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns the rows of a generation that a pass has, each once.

    Differs from the benchmark: exactly the share is drawn, and not each row with its
    probability.

    Args:
        seed: Of the run.
        number: Of the pass.
        age: Of the generation, 0 the newest.
        share: Of the rows.
        rows: ``[R] int64``, those of the games that the pass has.
    """
    num_wanted = round(len(rows) * share)
    chosen: NDArray[np.int64] = rows[
        _drawn(seed, number, 2 + 2 * age, len(rows), num_wanted)
    ]
    return chosen


def _drawn(
    seed: int, number: int, draw: int, size: int, num_wanted: int
) -> NDArray[np.int64]:
    """Returns so many of the numbers below a size, in a random order, each once."""
    count = min(size, num_wanted)
    if count == 0:
        return np.zeros(0, np.int64)
    places, _ = _core.draw_rows_of_pass(
        seed=seed,
        number=number * _DRAWS_OF_PASS + draw,
        offset=0,
        num_rows=count,
        first_row=0,
        size=size,
        num_symmetries=1,
    )
    return places
