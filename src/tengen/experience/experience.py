"""The interface of every kind of experience to a learner, alone or one of several.

Where several learners draw a batch together, the leading one has the experience. It
describes each batch with an order, which is JSON values, and each following learner
draws its own part with an ``ExperiencePart``.

Writers have other interfaces: games are written as segments, steps by the writers of a
store.
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
    """A batch that several learners are about to draw."""

    order: dict[str, Any]
    """JSON values by which an ``ExperiencePart`` draws its part of the batch."""
    draw: Callable[[], Batch]
    """Draws the leader's own part; may wait as ``Experience.sample`` does."""


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

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """Begins a batch of which other learners draw the rest.

        Args:
            num_samples: Samples B of the whole batch.
            first: The leader's first sample.
            last: One past the leader's last sample.
        """
        ...

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """Returns JSON values that bring an ``ExperiencePart`` up to date.

        Args:
            begins: Whether all parts take these values, and later orders build on them.
        """
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


class Followed(Protocol):
    """Experience in a process that follows the leader, which gives the draws.

    One thread draws; another one acknowledges batches.
    """

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Takes the values of ``Experience.shared``. Blocks while it reads files.

        Returns:
            Whether it could; if not, it must be opened anew for these values.
        """
        ...

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Draws a part of the batch that an order describes.

        Args:
            order: See ``Divided``.
            num_samples: Samples B of the whole batch.
            first: The first sample of the part.
            last: One past the last sample of the part.
        """
        ...

    def close(self) -> None:
        """Releases what it holds; a draw that waits fails. Any thread. Idempotent."""
        ...


class ExperiencePart:
    """A following learner's part of the leader's batches, of any experience.

    Args:
        open_followed: Opens the experience for the values of ``Experience.shared``.
    """

    def __init__(self, open_followed: Callable[[Mapping[str, Any]], Followed]) -> None:
        self._open = open_followed
        self._own: Followed | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """Takes the values of ``Experience.shared``. Blocks while it reads files."""
        if self._own is None or not self._own.follow(shared):
            self.close()
            self._own = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Draws a part of a batch; see ``Followed.draw``.

        Raises:
            RunError: The part was closed, or the draw fails.
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
