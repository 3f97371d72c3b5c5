"""What every kind of experience is to a learner.

Writers are another interface: games come by segments, steps by the writers of a store.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.store import Batch

__all__ = ["Experience"]


class Experience(Protocol):
    """What a learner draws batches from. Used by one thread."""

    @property
    def generation(self) -> int:
        """Turns of the actors behind what was taken in, 0 before the first."""
        ...

    def refresh(self) -> int:
        """Takes in what arrived since the last call, and returns how much."""
        ...

    def available(self) -> int:
        """Returns how many samples may be drawn now without waiting."""
        ...

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch, and what to do; empty: nothing.

        Args:
            num_samples: Of the batch, at least 1.
        """
        ...

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch, as the sampler and the rate limiter say."""
        ...

    def validation(self, num_samples: int) -> dict[str, NDArray[np.generic]] | None:
        """Returns columns of what is never learned from; None where all of it is.

        Args:
            num_samples: B; fewer come where there are fewer.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Returns JSON values with which it is opened to go on.

        Batches that were not acknowledged count as never drawn.
        """
        ...

    def describe(self) -> dict[str, int]:
        """Returns what it holds, by name, for the view."""
        ...

    def close(self) -> None:
        """Releases what it holds. A second call does nothing."""
        ...
