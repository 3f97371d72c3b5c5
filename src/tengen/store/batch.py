"""A batch, and what every table of the loop is to actors and learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Batch", "ExperienceTable"]


@dataclass(frozen=True)
class Batch:
    """B samples, lent to the learner until it acknowledges them.

    Attributes:
        lease: The number of this loan; loans count up from 0.
        keys: ``[B] int64``, which rows or items.
        probabilities: ``[B] float64``, the chance of each in one draw.
        columns: The arrays, ``[B, ...]`` each; lists of B arrays where they were not
            copied.
        table_size: Items, or rows, that were drawn from.
    """

    lease: int
    keys: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    columns: Mapping[str, Any]
    table_size: int
    _ack: Callable[[int, NDArray[np.float64] | None], None] = field(repr=False)

    def importance_weights(self, exponent: float) -> NDArray[np.float64]:
        """Returns what corrects a loss for draws that were not even.

        Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.4:
        ``(N * P(i)) ** -exponent``, divided by the greatest of the batch.

        Args:
            exponent: The paper's beta, 0 (no correction) to 1 (all of it).

        Returns:
            ``[B] float64``, above 0, at most 1.
        """
        weights = (self.table_size * self.probabilities) ** -exponent
        return np.asarray(weights / weights.max(), np.float64)

    def ack(self, priorities: NDArray[np.float64] | None = None) -> None:
        """Says that the learner is done with the batch.

        Batches are acknowledged in the order of their leases, each once: what a
        checkpoint then counts as used is a prefix.

        Args:
            priorities: ``[B]``, for samplers that use them; None for the others.

        Raises:
            UsageError: Out of order, twice, or with priorities that nobody uses.
        """
        self._ack(self.lease, priorities)


class ExperienceTable(Protocol):
    """A set of experience that actors add to and a learner draws from."""

    @property
    def generation(self) -> int:
        """Turns of the actors behind what was taken in, 0 before the first."""
        ...

    def insert(
        self, writer: str, sequence: int, columns: Mapping[str, NDArray[Any]]
    ) -> bool:
        """Adds one unit of experience; again with the same name it does nothing.

        Args:
            writer: Who sends it.
            sequence: The sender's own increasing number for it.
            columns: Its arrays.

        Returns:
            Whether it was new.
        """
        ...

    def refresh(self) -> int:
        """Takes in what arrived since the last call, and returns how much."""
        ...

    def samples_available(self) -> int:
        """Returns how many samples may be drawn now without waiting."""
        ...

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch, as the table's sampler and rate limiter say."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the table exactly."""
        ...

    def trim(self, state: Mapping[str, Any]) -> int:
        """Removes files that a durable checkpoint with ``state`` makes unneeded.

        Returns:
            How many were removed.
        """
        ...

    def describe(self) -> dict[str, int]:
        """Returns what it holds, by name, for the view."""
        ...

    def close(self) -> None:
        """Releases what it holds. A second call does nothing."""
        ...
