"""The base class of experience that draws rows of games in a reproducible order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.experience.experience import Divided
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.store.batch import Batch

__all__ = ["WRONG_FORM", "OrderedExperience", "Rows"]

# Errors that are raised if another version or another program wrote a state.
WRONG_FORM = (LookupError, TypeError, ValueError, AttributeError, OverflowError)

D = TypeVar("D", bound=tuple[Any, ...])
Rows = tuple[NDArray[np.int64], dict[str, NDArray[Any]], int]
"""Keys ``[R]``, columns, and the number of rows from which these were sampled."""


class OrderedExperience(ABC, Generic[D]):
    """Rows of games as ``Experience``, in an order that a subclass defines.

    The order is a sequence of draws. A draw is a tuple of JSON values; with the seed
    and the games in the manifest, it determines the rows of a batch. A follower uses
    the same class, and receives the leader's draws. Not thread-safe.

    Args:
        manifest: The games; empty if a subclass reads no games.
        num_batches: Number of batches acknowledged so far.

    Attributes:
        manifest: As given.
        num_drawn: Number of batches drawn so far, which is the index of the next batch.
    """

    def __init__(self, manifest: Manifest, num_batches: int) -> None:
        self.manifest = manifest
        self.num_drawn = num_batches
        # The draws on loan, oldest first.
        self._lent: deque[D] = deque()
        # Number of segments that the followers know of.
        self._num_shared = 0

    @abstractmethod
    def available(self) -> int:
        """Returns how many samples can be drawn now; see ``Experience``."""

    @abstractmethod
    def next_draw(self, num_samples: int) -> D:
        """Returns the next draw of the order, and advances.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """

    @abstractmethod
    def rows_of(self, draw: D, first: int, last: int) -> Rows:
        """Returns rows ``[first, last)`` of a draw."""

    @abstractmethod
    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Reads ``entries``, the newest segments; returns the number of new rows.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """

    @abstractmethod
    def order_state(self, lent: Sequence[D]) -> dict[str, Any]:
        """Returns JSON values that restore the order before the draws in ``lent``."""

    @abstractmethod
    def _draw_of(self, values: Sequence[Any]) -> D:
        """Converts the JSON values of a draw back to the draw."""

    @property
    def is_durable(self) -> bool:
        """True, because games are durable files before they are read."""
        return True

    @property
    def generation(self) -> int:
        """The newest generation that has been read, 0 before the first."""
        return max((entry.generation for entry in self.manifest), default=0)

    def refresh(self) -> int:
        """Reads newly sealed segments; see ``Experience.refresh``.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        return self.take_in(self.manifest.discover())

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch; never waits.

        Args:
            num_samples: Number B of rows, at most ``available``.

        Returns:
            The batch; keys are row numbers, and the columns are planes ``[B, C, H, W]
            float32``, legal ``[B, A] uint8``, policy ``[B, A] float32`` that sums to 1
            over the legal actions, policy_weight ``[B] float32``, outcome ``[B, 3]
            float32`` (win, draw and loss for the side to move), search_value ``[B]
            float32`` in [-1, 1] for the side to move, value_weight ``[B] float32``, and
            the targets of auxiliary heads (`tengen.agents.alphazero_loss`) if the
            subclass was opened with them.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """
        lease, draw = self.lend(num_samples)
        return self._batch(lease, draw, 0, num_samples, self.take_back)

    def lend(self, num_samples: int) -> tuple[int, D]:
        """Lends the next draw without reading its rows; returns its lease and the draw.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """
        draw = self.next_draw(num_samples)
        self._lent.append(draw)
        self.num_drawn += 1
        return self.num_drawn - 1, draw

    def take_back(
        self, lease: int, priorities: NDArray[np.float64] | None = None
    ) -> None:
        """Ends a loan; see ``Batch.ack``.

        Raises:
            UsageError: The loan is not the oldest open one, or ``priorities`` is given.
        """
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        if not self._lent or lease != self._num_returned:
            raise UsageError(
                f"lease ({lease}) must be the oldest batch not acknowledged; "
                f"acknowledge batches once each, in order"
            )
        self._lent.popleft()

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Experience.divide``; each learner reads its own rows.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """
        lease, draw = self.lend(num_samples)
        new = list(self.manifest)[self._num_shared :]
        self._num_shared += len(new)
        order = {"draw": draw, "segments": [to_dict(entry) for entry in new]}
        return Divided(
            order, lambda: self._batch(lease, draw, first, last, self.take_back)
        )

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Experience.shared``; returns the state."""
        if begins:
            self._num_shared = len(self.manifest)
        return self.state()

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """See ``Followed.follow``; reads the games that only the leader has."""
        segments = shared["manifest"]["segments"]
        own = self.manifest.to_dict()["segments"]
        if segments[: len(own)] != own:
            return False
        self._append(segments[len(own) :])
        return True

    def draw(
        self, order: Mapping[str, Any], num_samples: int, first: int, last: int
    ) -> Batch:
        """See ``Followed.draw``."""
        self._append(order["segments"])
        return self._batch(0, self._draw_of(order["draw"]), first, last, _no_ack)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the experience; see ``Experience.state``."""
        return {
            **self.order_state(list(self._lent)),
            "num_batches": self._num_returned,
        }

    @property
    def _num_returned(self) -> int:
        return self.num_drawn - len(self._lent)

    def _append(self, segments: Sequence[Mapping[str, Any]]) -> None:
        """Reads segments that the leader found, in its order."""
        entries = [from_dict(SegmentEntry, one, "segment") for one in segments]
        self.manifest.append(entries)
        self.take_in(entries)

    def _batch(
        self,
        lease: int,
        draw: D,
        first: int,
        last: int,
        ack: Callable[[int, NDArray[np.float64] | None], None],
    ) -> Batch:
        keys, columns, size = self.rows_of(draw, first, last)
        probabilities = np.full(len(keys), 1 / size)
        return Batch(lease, keys, probabilities, columns, size, ack)


def _no_ack(lease: int, priorities: object = None) -> None:
    """Does nothing, because only the leader counts acknowledged batches."""
