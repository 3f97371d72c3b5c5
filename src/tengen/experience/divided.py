"""Experience from which several learners draw a batch together, each its own part.

The leading learner has the experience. It describes each batch by an order, which is
JSON values. Each following learner has an ``ExperiencePart``, which draws by the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tengen.experience.experience import Experience
from tengen.store import Batch

__all__ = ["Divided", "Divisible", "ExperiencePart"]


class Divided(NamedTuple):
    """A batch that several learners are about to draw."""

    order: dict[str, Any]
    """JSON values by which an ``ExperiencePart`` draws its part of the batch."""
    draw: Callable[[], Batch]
    """Draws the leader's own part; may wait as ``Experience.sample`` does."""


class Divisible(Experience, Protocol):
    """The experience of a learner that leads others. Used by one thread."""

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


class ExperiencePart(Protocol):
    """Draws parts of batches, in a process that does not have the experience.

    One thread draws; another one acknowledges batches.
    """

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """Takes the values of ``Divisible.shared``. Blocks while it reads files."""
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
