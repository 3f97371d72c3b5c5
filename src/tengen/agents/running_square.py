"""A running mean of squares, which one batch cannot spoil."""

from __future__ import annotations

import math

__all__ = ["RunningSquare"]

# Decay of the running average per batch: it spans about a hundred batches.
_DECAY = 0.99
# How far a batch may be above the average: it then at most doubles the average, and a
# new unit of rewards is followed within a few batches.
_MOST_TIMES = 100.0
# The most of the first batch, before there is an average.
_MOST_FIRST = 1e6


class RunningSquare:
    """The running mean of squares over about a hundred batches.

    A batch counts at most a hundred times the average, or times 1 where the average is
    less: an outlier is forgotten after some seventy batches.
    """

    def __init__(self) -> None:
        """Begins without batches."""
        self._square = 0.0
        self._weight = 0.0

    def observe(self, square: float) -> None:
        """Takes in the mean square of a batch, which may be infinite or NaN."""
        mean = self._square / self._weight if self._weight else None
        most = _MOST_FIRST if mean is None else _MOST_TIMES * max(1.0, mean)
        bounded = square if square <= most else most  # also for NaN
        self._square += (1.0 - _DECAY) * (bounded - self._square)
        self._weight += (1.0 - _DECAY) * (1.0 - self._weight)

    def root(self, least: float) -> float:
        """Returns the root mean square, at least ``least``; 1 before any batch."""
        if self._weight == 0.0:
            return 1.0
        return max(least, math.sqrt(self._square / self._weight))

    def numbers(self) -> list[float]:
        """Returns the average so far, for a checkpoint."""
        return [self._square, self._weight]

    def load(self, numbers: list[float]) -> None:
        """Restores the average from what ``numbers`` returned.

        An average of an earlier version that is not finite begins anew.
        """
        is_finite = all(map(math.isfinite, numbers))
        self._square, self._weight = numbers if is_finite else (0.0, 0.0)
