"""Batches that contain both items of the replay and demonstrations.

Source: Gulcehre et al. 2020, "Making Efficient Use of Demonstrations to Solve Hard
Exploration Problems" (R2D3, arXiv:1909.01387), section 3: each element of a batch is a
demonstration with a constant probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.store import Batch

DEMOS = "demonstrations"
"""Name of the store table that holds the items of demonstrations."""

# Distinguishes these random numbers from others with the same seed.
_PURPOSE = 0x64656D6F


class Mixture(NamedTuple):
    """Which elements of a batch are demonstrations, a function of seed and number."""

    share: float
    """Probability that an element is a demonstration, in (0, 1)."""
    seed: int
    """Seed of the random numbers, at least 0."""

    def num_demos(self, number: int, num_samples: int, first: int, last: int) -> int:
        """Returns the number of demonstrations in a learner's part of a batch.

        Args:
            number: The number of the batch, counted from 0.
            num_samples: Number of elements in the complete batch.
            first: Index of the part's first element.
            last: Index after the part's last element.
        """
        uniforms = _core.uniforms(
            (self.seed, _PURPOSE), (0, number, 0, 0), num_samples, 1
        )
        return int((uniforms[first:last, 0] < self.share).sum())


def joined(parts: Sequence[Batch]) -> Batch:
    """Returns one batch of the samples of several; priorities return to their tables.

    The importance weight of a sample depends on its own table's size and probabilities.

    Args:
        parts: At least one batch, of tables with the same columns.
    """
    if len(parts) == 1:
        return parts[0]
    bounds = np.cumsum([len(part.keys) for part in parts])[:-1]

    def ack(lease: int, priorities: NDArray[np.float64] | None) -> None:
        each: Sequence[NDArray[np.float64] | None] = [None] * len(parts)
        if priorities is not None:
            each = np.split(priorities, bounds)
        for part, own in zip(parts, each, strict=True):
            part.ack(own)

    return Batch(
        lease=parts[0].lease,
        keys=np.concatenate([part.keys for part in parts]),
        probabilities=np.concatenate([part.probabilities for part in parts]),
        columns={
            name: np.concatenate([part.columns[name] for part in parts])
            for name in parts[0].columns
        },
        table_size=np.repeat(
            [part.table_size for part in parts], [len(part.keys) for part in parts]
        ),
        _ack=ack,
    )
