"""How learners of several processes add up what each of them has.

A `Group` is the few collectives that learning needs. `Alone` is that of one learner and
does nothing; that of several is `tengen.learners.torch_group`.
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
    """A learner of the group is gone, or silent for too long: no collective works."""


class Place(NamedTuple):
    """Where the rows of one learner are among those of all."""

    first: int
    """Rows of the learners of lower rank."""
    total: int
    """Rows of all."""


def row_bounds(num_rows: int, num_parts: int, size: int) -> list[tuple[int, int]]:
    """Returns the first row and the one behind the last of each of several learners.

    Each has whole parts of the batch, so that every part is what it is for one learner.

    Args:
        num_rows: Of the batch.
        num_parts: Of the batch, at least ``size``.
        size: Learners.
    """
    ends = [num_rows * (num_parts * rank // size) // num_parts for rank in range(size)]
    return list(zip(ends, [*ends[1:], num_rows], strict=True))


class Group(Protocol):
    """Learners that make every step together. Used by one thread at a time.

    Each method but ``close`` is called by every learner, in the same order: it blocks
    until all have called it, and raises ``GroupLost`` where one does not within the
    group's patience, or where there is a reason to wait no longer.
    """

    rank: int
    """This learner's, from 0, the leader's."""
    size: int
    """Learners."""
    num_parts: int
    """Parts that a batch of all is split into, at least ``size``; the learner that
    joins says how many."""

    def own(self, num_rows: int) -> slice:
        """Returns which of so many rows of all are this learner's. Asks nobody."""

    def add(self, tensor: Tensor) -> None:
        """Puts the sum over all learners in the place of a contiguous tensor.

        All get the same bits.
        """

    def gather(self, values: Sequence[float]) -> NDArray[np.float64]:
        """Returns ``[size, len(values)]``, the values of each learner."""

    def gather_rows(self, rows: Tensor) -> Tensor:
        """Returns the rows of all learners, ``[total, ...]``, those of rank 0 first.

        Args:
            rows: ``[N, ...]``, N any and the rest as that of the others.
        """

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Returns what each learner gave."""

    def broadcast(self, data: bytes) -> bytes:
        """Returns what rank 0 gave."""

    def place(self, num_rows: int) -> Place:
        """Returns where this learner's rows are."""

    def close(self) -> None:
        """Leaves; what others wait for fails soon. A second call does nothing."""


class Alone:
    """The group of one learner: nothing is added, and nothing is copied."""

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
"""The group of every learner that is not told of another one."""
