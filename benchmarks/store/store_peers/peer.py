"""What a store is to the measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["IMPORTANCE_EXPONENT", "PRIORITY_EXPONENT", "Drawn", "Peer", "Table"]

PRIORITY_EXPONENT = 0.6
IMPORTANCE_EXPONENT = 0.4

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """What a store is to hold.

    Attributes:
        columns: The dtype and shape of each array of an item.
        num_items: That it holds when it is full; the oldest leaves.
        batch_size: Items a sample.
        is_prioritized: Drawn by ``priority ** PRIORITY_EXPONENT``, else evenly.
    """

    columns: Mapping[str, tuple[str, tuple[int, ...]]]
    num_items: int
    batch_size: int
    is_prioritized: bool

    @property
    def item_bytes(self) -> int:
        """Bytes of an item."""
        return sum(
            np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
            for dtype, shape in self.columns.values()
        )

    @property
    def num_bytes(self) -> int:
        """Bytes of a full table."""
        return self.num_items * self.item_bytes


@dataclass(frozen=True)
class Drawn:
    """A batch.

    Attributes:
        columns: ``[batch_size, ...]`` each, gathered.
        weights: ``[batch_size]``, what corrects the loss for draws by priority, by
            ``IMPORTANCE_EXPONENT``, the greatest 1; None where draws are even.
        update: Sends new priorities back, ``[batch_size] float64``, or None.
    """

    columns: Columns
    weights: NDArray[Any] | None
    update: Callable[[NDArray[np.float64] | None], object]


class Peer(Protocol):
    """A store with one table, used as its makers advise; made from a `Table`."""

    def insert(self, columns: Columns) -> None:
        """Adds items, ``[N, ...]`` each."""
        ...

    def flush(self) -> None:
        """Waits until every insert has taken effect."""
        ...

    def sample(self) -> Drawn:
        """Draws a batch."""
        ...

    def close(self) -> None:
        """Ends the store and its processes."""
        ...
