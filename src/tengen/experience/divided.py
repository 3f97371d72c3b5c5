"""Experience that several learners draw a batch from, each its own part.

The learner that leads has the experience. It says by an order, JSON values, what a
batch is; the others have a part of the experience each, which draws by the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tengen.experience.experience import Experience
from tengen.store import Batch

__all__ = ["Divided", "Divisible", "ExperiencePart"]


class Divided(NamedTuple):
    """A batch that is about to be drawn by several learners."""

    order: dict[str, Any]
    """JSON values by which an ``ExperiencePart`` draws its part of it."""
    draw: Callable[[], Batch]
    """Draws the leader's own part; may wait as ``Experience.sample`` does."""


class Divisible(Experience, Protocol):
    """The experience of a learner that leads others. Used by one thread."""

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """Begins a batch of which others draw what is not in ``[first, last)``.

        Args:
            num_samples: Of the whole batch, B.
            first: The leader's first sample.
            last: The one behind its last.
        """
        ...

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """Returns JSON values with which a part catches up, as of now.

        Args:
            begins: Whether the orders from here on go on from it, for all parts.
        """
        ...


class ExperiencePart(Protocol):
    """Draws parts of batches in another process than the experience's.

    Used by one thread; batches are acknowledged by another.
    """

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """Takes what ``Divisible.shared`` told. Blocks while it reads."""
        ...

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Draws a part of the batch that an order says.

        Args:
            order: See ``Divided``.
            num_samples: Of the whole batch, B.
            first: The first sample of the part.
            last: The one behind its last.
        """
        ...

    def close(self) -> None:
        """Releases what it holds; a draw that waits fails. Any thread. Idempotent."""
        ...
