"""How learners in several processes combine their gradients and statistics.

A `Group` has the few collectives that learning needs. `Alone` is the group of a single
learner; the group of several learners is in `tengen.learners.torch_group`.
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
    """A learner of the group is gone or did not answer in time: collectives fail."""


class Place(NamedTuple):
    """The place of one learner's rows among the rows of all learners."""

    first: int
    """Number of rows of the learners of lower rank."""
    total: int
    """Number of rows of all learners."""


def row_bounds(num_rows: int, num_parts: int, size: int) -> list[tuple[int, int]]:
    """Returns the first row and the end of the rows of each learner.

    Each learner has whole parts of the batch, so that the parts are the same as with a
    single learner.

    Args:
        num_rows: Rows of the batch.
        num_parts: Parts of the batch, at least ``size``.
        size: Number of learners.
    """
    ends = [num_rows * (num_parts * rank // size) // num_parts for rank in range(size)]
    return list(zip(ends, [*ends[1:], num_rows], strict=True))


class Group(Protocol):
    """Learners that make every step together. Used by one thread at a time.

    Every learner must call the methods, except ``own`` and ``close``, in the same
    order. A method blocks until all learners have called it, and raises ``GroupLost``
    where one does not call it in time, or where there is a reason to stop waiting.
    """

    rank: int
    """This learner's rank; the leader's is 0."""
    size: int
    """Number of learners."""
    num_parts: int
    """Parts that the whole batch is split into, at least ``size``; set by the learner
    that joins the group."""

    def own(self, num_rows: int) -> slice:
        """Returns which of ``num_rows`` rows are this learner's; never blocks."""

    def add(self, tensor: Tensor) -> None:
        """Replaces a contiguous tensor by the sum over all learners.

        All learners get the same bits.
        """

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Returns ``[size, len(values)]``, the values of each learner."""

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Returns the rows of all learners, ``[total, ...]``, those of rank 0 first.

        Args:
            rows: ``[N, ...]``; N may differ between learners, the other axes may not.
        """

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Returns the bytes that each learner gave, by rank."""

    def broadcast(self, data: bytes) -> bytes:
        """Returns the bytes that rank 0 gave."""

    def place(self, num_rows: int) -> Place:
        """Returns the place of this learner's rows among those of all learners."""

    def close(self) -> None:
        """Leaves the group; the others' calls fail soon. A second call does nothing."""


class Alone:
    """The group of a single learner: nothing is added, and nothing is copied."""

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
"""The group of every learner that has not joined another one."""
