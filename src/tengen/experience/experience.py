"""The interfaces with which one or several learners draw batches of experience.

If several learners share each batch, the leader has the experience. It describes each
batch with an order, which consists of JSON values, and each follower draws its part of
the batch with an ``ExperiencePart``.

Writers use other interfaces: games are written as segments, and steps with the writers
of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.store import Batch

__all__ = ["Divided", "Experience", "ExperiencePart", "Followed"]


class Divided(NamedTuple):
    """A batch that several learners will draw."""

    order: dict[str, Any]
    """JSON values with which an ``ExperiencePart`` draws its part of the batch."""
    draw: Callable[[], Batch]
    """Draws the leader's part; may wait as ``Experience.sample`` does."""


class Experience(Protocol):
    """Experience from which a learner draws batches. Used by one thread."""

    @property
    def generation(self) -> int:
        """Number of actor turns whose experience has been read, 0 before the first."""
        ...

    @property
    def is_durable(self) -> bool:
        """Whether all that this process has added survives a kill. Any thread."""
        ...

    def refresh(self) -> int:
        """Reads new experience; returns how many rows or items are new."""
        ...

    def available(self) -> int:
        """Returns how many samples can be drawn now without waiting."""
        ...

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch and what to do; empty if nothing is.

        Args:
            num_samples: Samples of the batch, at least 1.

        Raises:
            UsageError: The config never allows that many samples.
        """
        ...

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch with the sampler, within the rate limiter."""
        ...

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """Begins a batch that the leader and other learners draw in parts.

        Args:
            num_samples: Number B of samples in the complete batch.
            first: Index of the leader's first sample.
            last: Index after the leader's last sample.
        """
        ...

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """Returns JSON values that bring an ``ExperiencePart`` up to date.

        Args:
            begins: Whether all parts read these values, so that later orders can rely
                on them.
        """
        ...

    def validation(self, num_samples: int) -> dict[str, NDArray[np.generic]] | None:
        """Returns columns of validation rows; None if all rows are learned from.

        Args:
            num_samples: Maximum number B of rows.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Returns JSON values from which the experience can be restored.

        Batches that have not been acknowledged count as never drawn.
        """
        ...

    def describe(self) -> dict[str, int]:
        """Returns counts of the contents, by name, for reports."""
        ...

    def close(self) -> None:
        """Frees all resources. A second call does nothing."""
        ...


class Followed(Protocol):
    """Experience in a follower's process, which draws parts of the leader's batches.

    One thread draws; another thread acknowledges batches.
    """

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Reads the values of ``Experience.shared``. Blocks while it reads files.

        Returns:
            False if the experience must be opened again with these values.
        """
        ...

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Draws a part of the batch that an order describes.

        Args:
            order: See ``Divided``.
            num_samples: Number B of samples in the complete batch.
            first: Index of the part's first sample.
            last: Index after the part's last sample.
        """
        ...

    def close(self) -> None:
        """Frees all resources; a waiting draw fails. Any thread. Idempotent."""
        ...


class ExperiencePart:
    """A follower's part of the leader's batches, for any kind of experience.

    Args:
        open_followed: Opens the experience with the values of ``Experience.shared``.
    """

    def __init__(self, open_followed: Callable[[Mapping[str, Any]], Followed]) -> None:
        self._open = open_followed
        self._own: Followed | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """Reads the values of ``Experience.shared``. Blocks while it reads files."""
        if self._own is None or not self._own.follow(shared):
            self.close()
            self._own = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Draws a part of a batch; see ``Followed.draw``.

        Raises:
            RunError: The part is closed, or the draw fails.
        """
        own = self._own
        if own is None:
            raise RunError("experience (closed) must be open; the leader has ended")
        return own.draw(order, num_samples, first, last)

    def close(self) -> None:
        """Closes the experience; see ``Followed.close``. Any thread. Idempotent."""
        own, self._own = self._own, None
        if own is not None:
            own.close()
