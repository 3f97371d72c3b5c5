"""Batches lent to the learner, in order: which are still out, and which are used."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from tengen.errors import UsageError

__all__ = ["Leases"]

T = TypeVar("T")


class Leases(Generic[T]):
    """Numbers loans from ``first`` on, and takes them back in the order of numbers.

    Args:
        first: The number of the next loan.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._open: deque[tuple[int, T]] = deque()

    @property
    def next(self) -> int:
        """The number that the next loan gets."""
        return self._next

    @property
    def num_returned(self) -> int:
        """How many loans were returned, which is the number of the oldest one out."""
        return self._next - len(self._open)

    def outstanding(self) -> list[T]:
        """Returns what is lent, the oldest first."""
        return [value for _, value in self._open]

    def lend(self, value: T) -> int:
        """Notes a loan and returns its number."""
        self._open.append((self._next, value))
        self._next += 1
        return self._next - 1

    def take_back(self, lease: int) -> T:
        """Ends a loan and returns what was lent.

        Raises:
            UsageError: The loan is not the oldest one out.
        """
        if not self._open or self._open[0][0] != lease:
            raise UsageError(
                f"lease ({lease}) must be the oldest batch not acknowledged; "
                f"acknowledge batches once each, in order"
            )
        return self._open.popleft()[1]
