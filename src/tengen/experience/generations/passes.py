"""A pass over generations: which rows it draws, and in which order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core

__all__ = ["GenerationPass", "chosen_games", "sampled_rows"]

_DRAWS_OF_PASS = 4096
"""The most draws in a pass: two for each generation, and one for its order."""


class GenerationPass(NamedTuple):
    """A pass, from which its rows follow, given the games."""

    number: int
    """The number of the pass in the run, from 0."""
    generation: int
    """The newest generation of the pass."""
    num_segments: int
    """Number of the manifest's first segments, whose games count."""

    def order(
        self, seed: int, offset: int, num_rows: int, size: int, num_symmetries: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Returns the places of the next rows of the pass, and a symmetry for each.

        Args:
            seed: The run's seed.
            offset: Rows of the pass that came before.
            num_rows: How many rows.
            size: Rows of the whole pass.
            num_symmetries: Symmetries of the game.
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
    """Returns which games of a generation a pass draws from; each pass draws anew.

    Args:
        seed: The run's seed.
        number: The pass's number.
        age: The generation's age, 0 for the newest.
        num_games: Games of the generation.
        num_wanted: The most games to draw.

    Returns:
        ``[G] int64``, places among the generation's games, each once.
    """
    return _drawn(seed, number, 1 + 2 * age, num_games, num_wanted)


def sampled_rows(
    seed: int, number: int, age: int, share: float, rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Returns the rows of a generation that a pass has, each once.

    Differs from the benchmark: exactly the share is drawn, while the benchmark draws
    each row with a probability.

    Args:
        seed: The run's seed.
        number: The pass's number.
        age: The generation's age, 0 for the newest.
        share: Share of the rows to draw.
        rows: ``[R] int64``, the rows of the games that the pass draws from.
    """
    num_wanted = round(len(rows) * share)
    chosen: NDArray[np.int64] = rows[
        _drawn(seed, number, 2 + 2 * age, len(rows), num_wanted)
    ]
    return chosen


def _drawn(
    seed: int, number: int, draw: int, size: int, num_wanted: int
) -> NDArray[np.int64]:
    """Returns distinct numbers below ``size``, at most ``num_wanted``, at random."""
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
