"""The interfaces through which one or several learners sample batches of experience.

If several learners share each batch, the leader holds the experience. The leader
describes each batch with an order, which consists of JSON values, and each follower
samples its part of the batch with an ``ExperiencePart``.

Writers use other interfaces: they write games as segments, and steps with store
writers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.store import Batch


class Divided(NamedTuple):
    """A batch that is divided between several learners and not sampled yet."""

    order: dict[str, Any]
    """JSON values from which an ``ExperiencePart`` samples its part of the batch."""
    draw: Callable[[], Batch]
    """Samples the leader's part of the batch; may block like ``Experience.sample``."""


class Experience(Protocol):
    """Experience from which a learner samples batches. Used by one thread."""

    @property
    def generation(self) -> int:
        """Number of actor turns whose experience has been read; 0 at the start."""
        ...

    @property
    def is_durable(self) -> bool:
        """Whether all experience added by this process survives a kill. Thread-safe."""
        ...

    @property
    def num_together(self) -> int:
        """Maximum number of batches that are sampled in sequence, at least 1.

        Above 1, each batch is the same whether or not the previous ones were
        acknowledged, and items have no priorities.
        """
        ...

    def refresh(self) -> int:
        """Reads new experience; returns the number of new rows or items."""
        ...

    def available(self) -> int:
        """Returns the number of samples that are available now without blocking."""
        ...

    def lacks(self, num_samples: int) -> str:
        """Returns why no batch can be sampled now, with advice; empty if one is ready.

        Args:
            num_samples: Number of samples in the batch, at least 1.

        Raises:
            UsageError: The config never allows that many samples.
        """
        ...

    def sample(self, num_samples: int) -> Batch:
        """Samples a batch of ``num_samples``; may block until the rate limits allow."""
        ...

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """Begins a batch that the leader and the followers sample in parts.

        Args:
            num_samples: Number B of samples in the complete batch.
            first: Index of the leader's first sample.
            last: Index after the leader's last sample.
        """
        ...

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """Returns JSON values that bring an ``ExperiencePart`` up to date.

        Args:
            begins: Whether every ``ExperiencePart`` applies this result. If so, later
                orders contain only what is new since then.
        """
        ...

    def validation(self, num_samples: int) -> dict[str, NDArray[np.generic]] | None:
        """Returns columns of validation rows; None if no rows are held out.

        Args:
            num_samples: Maximum number B of rows.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Returns JSON values from which the state of sampling can be restored.

        Batches that have not been acknowledged count as never sampled.
        """
        ...

    def describe(self) -> dict[str, int]:
        """Returns counts of the stored games, rows or items by name, for reports."""
        ...

    def close(self) -> None:
        """Frees all resources. A second call does nothing."""
        ...


class Followed(Protocol):
    """Experience in a follower's process, which samples parts of the leader's batches.

    One thread samples batches; another thread acknowledges them.
    """

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Applies the values of ``Experience.shared``. Blocks while it reads files.

        Returns:
            False if the experience must be opened again with these values.
        """
        ...

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Samples a part of the batch that ``order`` describes.

        Args:
            order: See ``Divided``.
            num_samples: Number B of samples in the complete batch.
            first: Index of the part's first sample.
            last: Index after the part's last sample.
        """
        ...

    def close(self) -> None:
        """Frees all resources; a blocked ``draw`` raises. Thread-safe, idempotent."""
        ...


class ExperiencePart:
    """Samples a follower's part of the leader's batches, for any kind of experience.

    Args:
        open_followed: Opens the follower's experience with the values of
            ``Experience.shared``.
    """

    def __init__(self, open_followed: Callable[[Mapping[str, Any]], Followed]) -> None:
        self._open = open_followed
        self._own: Followed | None = None

    def catch_up(self, shared: Mapping[str, Any]) -> None:
        """Applies the values of ``Experience.shared``. Blocks while it reads files."""
        if self._own is None or not self._own.follow(shared):
            self.close()
            self._own = self._open(shared)

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """Samples a part of a batch; see ``Followed.draw``.

        Raises:
            RunError: This object is closed, or sampling fails.
        """
        own = self._own
        if own is None:
            raise RunError("experience (closed) has lost its leading learner; resume")
        return own.draw(order, num_samples, first, last)

    def close(self) -> None:
        """Closes the follower's experience. Thread-safe and idempotent."""
        own, self._own = self._own, None
        if own is not None:
            own.close()
