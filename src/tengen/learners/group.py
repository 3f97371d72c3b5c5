"""Groups of learners, which combine gradients and statistics of several processes.

A `Group` has the collectives that learning needs. `Alone` is the group of a single
learner, and `tengen.learners.torch_group.TorchGroup` that of several learners.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "ALONE",
    "Alone",
    "Group",
    "GroupLost",
    "Place",
    "row_bounds",
]


class GroupLost(Exception):
    """A collective failed, because a learner of the group is gone or not responding."""


class Place(NamedTuple):
    """The position of a learner's rows among the rows of all learners, by rank."""

    first: int
    """Number of rows of all learners with lower ranks."""
    total: int
    """Number of rows of all learners of the group."""


def row_bounds(num_rows: int, num_parts: int, size: int) -> list[tuple[int, int]]:
    """Returns bounds ``(first, end)`` of each learner's rows in a batch, by rank.

    Each learner gets complete parts of the batch, so that the parts are the same as
    with a single learner.

    Args:
        num_rows: Number of rows in the batch.
        num_parts: Number of parts of the batch, at least ``size``.
        size: Number of learners.
    """
    ends = [num_rows * (num_parts * rank // size) // num_parts for rank in range(size)]
    return list(zip(ends, [*ends[1:], num_rows], strict=True))


class Group(Protocol):
    """Learners that share each learner step. Used by one thread at a time.

    All learners must call the methods, except ``own`` and ``close``, in the same order.
    Each method blocks until all learners have called it. It raises ``GroupLost`` if a
    learner does not call it in time, has ended, or must stop.
    """

    rank: int
    """This learner's rank in the group; the leader has rank 0."""
    size: int
    """Number of learners in the group."""
    num_parts: int
    """Number of parts of the complete batch, at least ``size``; set by the learner that
    joins the group."""

    def own(self, num_rows: int) -> slice:
        """Returns this learner's slice of a batch of ``num_rows``; never blocks."""

    def add(self, tensor: Tensor) -> None:
        """Replaces a contiguous tensor with its sum over all learners (all-reduce).

        The sum is bit-identical on all learners.
        """

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Returns ``values`` of each learner by rank, ``[size, len(values)]``."""

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Returns ``rows`` of all learners concatenated by rank, ``[total, ...]``.

        Args:
            rows: ``[N, ...]``; only N may differ between learners.
        """

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Returns a list of each learner's ``data``, by rank."""

    def broadcast(self, data: bytes) -> bytes:
        """Returns the leader's ``data`` on all learners."""

    def place(self, num_rows: int) -> Place:
        """Returns the position of this learner's ``num_rows`` among all rows."""

    def close(self) -> None:
        """Leaves the group, so that other learners' calls soon fail. Idempotent."""


class Alone:
    """The group of a single learner, whose collectives return their arguments."""

    rank = 0
    size = 1
    num_parts = 1

    def own(self, num_rows: int) -> slice:
        """See ``Group.own``."""
        return slice(0, num_rows)

    def add(self, tensor: Tensor) -> None:
        """See ``Group.add``."""

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """See ``Group.gather``."""
        return np.array([values], np.float64)

    def gather_rows(self, rows: Tensor) -> Tensor:
        """See ``Group.gather_rows``."""
        return rows

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """See ``Group.gather_bytes``."""
        return [data]

    def broadcast(self, data: bytes) -> bytes:
        """See ``Group.broadcast``."""
        return data

    def place(self, num_rows: int) -> Place:
        """See ``Group.place``."""
        return Place(0, num_rows)

    def close(self) -> None:
        """See ``Group.close``."""


ALONE = Alone()
"""The group of a learner that has not joined other learners."""
