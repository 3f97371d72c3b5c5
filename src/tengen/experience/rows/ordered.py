"""The base class of experience that samples rows of games in a reproducible order."""

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

# Exceptions that a malformed state raises, such as one written by a different version.
WRONG_FORM = (LookupError, TypeError, ValueError, AttributeError, OverflowError)

D = TypeVar("D", bound=tuple[Any, ...])
Rows = tuple[NDArray[np.int64], dict[str, NDArray[Any]], int]
"""Keys ``[R]``, columns, and the number of rows from which the rows were sampled."""


class OrderedExperience(ABC, Generic[D]):
    """Rows of games as ``Experience``, in an order that a subclass defines.

    The order is a sequence of draws. A draw is a tuple of JSON values, which determines
    the rows of a batch, given the seed and the games in the manifest. A follower uses
    the same class, and receives the leader's draws. Not thread-safe.

    Args:
        manifest: The segments of games; empty if a subclass reads no games.
        num_batches: Number of batches acknowledged so far.

    Attributes:
        manifest: The manifest given to the constructor.
        num_drawn: Number of batches lent so far, which is the index of the next batch.
        num_together: 1; see ``Experience``.
    """

    num_together = 1

    def __init__(self, manifest: Manifest, num_batches: int) -> None:
        self.manifest = manifest
        self.num_drawn = num_batches
        # The draws of batches on loan, oldest first.
        self._lent: deque[D] = deque()
        # Number of segments of the manifest that the followers have received.
        self._num_shared = 0

    @abstractmethod
    def available(self) -> int:
        """Returns the number of samples available now; see ``Experience.available``."""

    @abstractmethod
    def next_draw(self, num_samples: int) -> D:
        """Returns the next draw, for ``num_samples`` rows, and advances the order.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """

    @abstractmethod
    def rows_of(self, draw: D, first: int, last: int) -> Rows:
        """Returns rows ``[first, last)`` of the batch that ``draw`` describes."""

    @abstractmethod
    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Loads the segments ``entries``; returns the number of new rows.

        Raises:
            UsageError: A segment has a newer schema or is of a different game.
            RunError: A segment is damaged.
        """

    @abstractmethod
    def order_state(self, lent: Sequence[D]) -> dict[str, Any]:
        """Returns the state of the order before the draws ``lent``, as JSON values."""

    @abstractmethod
    def _draw_of(self, values: Sequence[Any]) -> D:
        """Creates a draw from its JSON values."""

    @property
    def is_durable(self) -> bool:
        """True, because games are durable files before they are read."""
        return True

    @property
    def generation(self) -> int:
        """The newest generation in the manifest, 0 if there is none."""
        return max((entry.generation for entry in self.manifest), default=0)

    def refresh(self) -> int:
        """Reads newly sealed segments; see ``Experience.refresh``.

        Raises:
            UsageError: A segment has a newer schema or is of a different game.
            RunError: A segment is damaged.
        """
        return self.take_in(self.manifest.discover())

    def sample(self, num_samples: int) -> Batch:
        """Samples a batch of rows; never blocks for new games.

        Args:
            num_samples: Number B of rows, at most ``available``.

        Returns:
            The batch; keys are row indices, and the columns are planes ``[B, C, H, W]
            float32``, legal ``[B, A] uint8``, policy ``[B, A] float32`` that sums to 1
            over the legal actions, policy_weight ``[B] float32``, outcome ``[B, 3]
            float32`` (win, draw and loss for the side to move), search_value ``[B]
            float32`` in [-1, 1] for the side to move, value_weight ``[B] float32``, and
            the targets of auxiliary heads (`tengen.agents.alphazero_loss`) if the
            subclass was opened with ``auxiliary``.

        Raises:
            RunError: Fewer than ``num_samples`` samples are available.
        """
        lease, draw = self.lend(num_samples)
        return self._batch(lease, draw, 0, num_samples, self.take_back)

    def lend(self, num_samples: int) -> tuple[int, D]:
        """Lends the next batch without deriving its rows; returns its lease and draw.

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
        """Ends the loan of batch ``lease``; see ``Batch.ack``.

        Raises:
            UsageError: The loan is not the oldest open one, or ``priorities`` is given.
        """
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None with uniform sampling; leave them out"
            )
        if not self._lent or lease != self._num_returned:
            raise UsageError(
                f"lease ({lease}) must be the oldest unacknowledged batch; acknowledge "
                "each batch once, in order"
            )
        self._lent.popleft()

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Experience.divide``; each learner derives its own part of the rows.

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
        """See ``Experience.shared``; returns the result of ``state``."""
        if begins:
            self._num_shared = len(self.manifest)
        return self.state()

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """See ``Followed.follow``; loads the leader's segments that this one lacks."""
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
        """Returns the order and batch count as JSON; see ``Experience.state``."""
        return {
            **self.order_state(list(self._lent)),
            "num_batches": self._num_returned,
        }

    @property
    def _num_returned(self) -> int:
        return self.num_drawn - len(self._lent)

    def _append(self, segments: Sequence[Mapping[str, Any]]) -> None:
        """Loads segments that the leader has discovered, in the leader's order."""
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
