"""The interface of every kind of experience to a learner.

Writers have other interfaces: games are written as segments, steps by the writers of a
store.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.store import Batch

__all__ = ["Experience"]


class Experience(Protocol):
    """Experience that a learner draws batches from. Used by one thread."""

    @property
    def generation(self) -> int:
        """Number of actor turns whose experience was taken in, 0 before the first."""
        ...

    @property
    def is_durable(self) -> bool:
        """Whether a kill loses nothing that this process has added. Any thread."""
        ...

    def refresh(self) -> int:
        """Takes in what arrived since the last call; returns how many rows or items."""
        ...

    def available(self) -> int:
        """Returns how many samples may be drawn now without waiting."""
        ...

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch and what to do; empty: nothing is.

        Args:
            num_samples: Samples of the batch, at least 1.

        Raises:
            UsageError: By the config there can never be that many.
        """
        ...

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch by the sampler, within the rate limiter."""
        ...

    def validation(self, num_samples: int) -> dict[str, NDArray[np.generic]] | None:
        """Returns columns of validation rows; None where all rows are learned from.

        Args:
            num_samples: The most rows B; fewer where there are fewer.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Returns JSON values with which the experience can be opened again to go on.

        Batches that were not acknowledged count as never drawn.
        """
        ...

    def describe(self) -> dict[str, int]:
        """Returns counts of what it holds, by name, for reports."""
        ...

    def close(self) -> None:
        """Releases what it holds. A second call does nothing."""
        ...
