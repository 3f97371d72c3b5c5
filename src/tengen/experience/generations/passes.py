"""A pass over generations: which rows it has, and in which order they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core

__all__ = ["GenerationPass", "num_sampled", "sampled_rows"]

_DRAWS_OF_PASS = 1024
"""Draws that a pass may make: one of each generation, and its order."""


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


def num_sampled(num_rows: int, share: float) -> int:
    """Returns how many rows of a generation a pass has."""
    return min(num_rows, round(num_rows * share))


def sampled_rows(
    seed: int, number: int, share: float, by_generation: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Returns the rows of a pass, not yet in its order; a pure function.

    Differs from the benchmark: of each generation exactly the share is drawn, and not
    each row with its probability.

    Args:
        seed: Of the run.
        number: Of the pass.
        share: Of each generation.
        by_generation: The rows of each, the newest first.

    Returns:
        ``[K] int64``, each row once.
    """
    chosen = [np.zeros(0, np.int64)]
    for age, rows in enumerate(by_generation):
        count = num_sampled(len(rows), share)
        if count == 0:
            continue
        places, _ = _core.draw_rows_of_pass(
            seed=seed,
            number=number * _DRAWS_OF_PASS + 1 + age,
            offset=0,
            num_rows=count,
            first_row=0,
            size=len(rows),
            num_symmetries=1,
        )
        chosen.append(rows[places])
    return np.concatenate(chosen)
