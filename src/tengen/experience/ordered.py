"""Rows of games as experience, each batch in a given order: the leader's or a part."""

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

# Raised where another version or another program wrote a state.
WRONG_FORM = (LookupError, TypeError, ValueError, AttributeError, OverflowError)

D = TypeVar("D", bound=tuple[Any, ...])
Rows = tuple[NDArray[np.int64], dict[str, NDArray[Any]], int]
"""Keys ``[R]``, columns, and the number of rows that they were drawn from."""


class OrderedExperience(ABC, Generic[D]):
    """Rows of games as ``Experience``, in an order that each subclass defines.

    The order is a sequence of draws. A draw is a tuple of JSON values; with the seed
    and the games in the manifest, it determines the rows of a batch. A learner that
    follows another one has the same class, and gets the leader's draws. Not
    thread-safe.

    Args:
        manifest: The games; a subclass that reads none has an empty manifest.
        num_batches: Batches acknowledged before.

    Attributes:
        manifest: As given.
        num_drawn: Batches drawn, which is the number of the next one.
    """

    def __init__(self, manifest: Manifest, num_batches: int) -> None:
        self.manifest = manifest
        self.num_drawn = num_batches
        # The draws that are lent, the oldest first: the last of ``num_drawn``.
        self._lent: deque[D] = deque()
        # Number of segments that the following learners know of.
        self._num_shared = 0

    @abstractmethod
    def available(self) -> int:
        """Returns how many samples may be drawn now; see ``Experience``."""

    @abstractmethod
    def next_draw(self, num_samples: int) -> D:
        """Returns the next draw of the order, and moves on.

        Raises:
            RunError: There are too few rows for it.
        """

    @abstractmethod
    def rows_of(self, draw: D, first: int, last: int) -> Rows:
        """Returns rows ``[first, last)`` of a draw."""

    @abstractmethod
    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Takes in the last segments of the manifest; returns how many new rows.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """

    @abstractmethod
    def order_state(self, lent: Sequence[D]) -> dict[str, Any]:
        """Returns JSON values that restore the order before the draws that are lent."""

    @abstractmethod
    def _draw_of(self, values: Sequence[Any]) -> D:
        """Returns the draw that was sent as JSON values."""

    @property
    def is_durable(self) -> bool:
        """True: games are files before they are taken in."""
        return True

    @property
    def generation(self) -> int:
        """The newest generation that was taken in, 0 before the first."""
        return max((entry.generation for entry in self.manifest), default=0)

    def refresh(self) -> int:
        """Takes in the segments that were sealed; see ``Experience.refresh``.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        return self.take_in(self.manifest.discover())

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch; never waits.

        Args:
            num_samples: B, at most ``available``.

        Returns:
            The batch; keys are row numbers, and the columns are planes ``[B, C, H, W]
            float32``, legal ``[B, A] uint8``, policy ``[B, A] float32`` that sums to 1
            over the legal actions, policy_weight ``[B] float32``, outcome ``[B, 3]
            float32`` (win, draw, loss, to play), search_value ``[B] float32`` in [-1,
            1] to play, and value_weight ``[B] float32``; and those of auxiliary heads
            (`tengen.agents.alphazero_update`) where they were asked for.

        Raises:
            RunError: Too few rows may be drawn.
        """
        lease, draw = self.lend(num_samples)
        return self._batch(lease, draw, 0, num_samples, self.take_back)

    def lend(self, num_samples: int) -> tuple[int, D]:
        """Lends the next draw without reading its rows; returns its lease and the draw.

        Raises:
            RunError: Too few rows may be drawn.
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
            UsageError: The loan is not the oldest one out, or priorities are given.
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
        """See ``Experience.divide``: each learner reads its own rows.

        Raises:
            RunError: Too few rows may be drawn.
        """
        lease, draw = self.lend(num_samples)
        new = list(self.manifest)[self._num_shared :]
        self._num_shared += len(new)
        order = {"draw": draw, "segments": [to_dict(entry) for entry in new]}
        return Divided(
            order, lambda: self._batch(lease, draw, first, last, self.take_back)
        )

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Experience.shared``: the state."""
        if begins:
            self._num_shared = len(self.manifest)
        return self.state()

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """See ``Followed.follow``: takes in the games that the leader has beyond."""
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
        """Returns JSON values that restore the experience.

        Batches not acknowledged count as never drawn.
        """
        return {
            **self.order_state(list(self._lent)),
            "num_batches": self._num_returned,
        }

    @property
    def _num_returned(self) -> int:
        return self.num_drawn - len(self._lent)

    def _append(self, segments: Sequence[Mapping[str, Any]]) -> None:
        """Takes in segments that the leader met, in its order."""
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
    """Does nothing: only the leader counts which batches were used."""
