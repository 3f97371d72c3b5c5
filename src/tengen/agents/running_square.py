"""A running mean of squares, which one batch cannot spoil."""

from __future__ import annotations

import math

__all__ = ["RunningSquare"]

# Decay of the running average per batch: it spans about a hundred batches.
_DECAY = 0.99
# How far a batch may be above the average: it then at most doubles the average, and a
# new unit of rewards is followed within a few batches.
_MOST_TIMES = 100.0


class RunningSquare:
    """The running mean of squares over about a hundred batches.

    A batch counts at most a hundred times the average, or times the square of the least
    root where the average is less: an outlier is forgotten after some seventy batches.
    Before the first batch the average is 1.
    """

    def __init__(self, least: float) -> None:
        """Begins without batches.

        Args:
            least: The least root, above 0.
        """
        self._least = least
        self._square = 0.0
        self._weight = 0.0

    @property
    def root(self) -> float:
        """The root mean square, at least ``least``; 1 before any batch."""
        return max(self._least, math.sqrt(self._mean))

    def observe(self, square: float) -> None:
        """Takes in the mean square of a batch, which may be infinite or NaN."""
        most = _MOST_TIMES * max(self._least**2, self._mean)
        bounded = square if square <= most else most  # also for NaN
        self._square += (1.0 - _DECAY) * (bounded - self._square)
        self._weight += (1.0 - _DECAY) * (1.0 - self._weight)

    def numbers(self) -> list[float]:
        """Returns the average so far, for a checkpoint."""
        return [self._square, self._weight]

    def load(self, numbers: list[float]) -> None:
        """Restores the average from what ``numbers`` returned.

        An average of an earlier version that is not finite begins anew.
        """
        is_finite = all(map(math.isfinite, numbers))
        self._square, self._weight = numbers if is_finite else (0.0, 0.0)

    @property
    def _mean(self) -> float:
        return self._square / self._weight if self._weight else 1.0
