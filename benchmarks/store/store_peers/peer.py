"""``Peer``, the interface through which every store is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PRIORITY_EXPONENT = 0.6
IMPORTANCE_EXPONENT = 0.4

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """The items, capacity and sampling of a store's table.

    Attributes:
        columns: The dtype and shape of each array of an item.
        num_items: Capacity; the oldest item is removed from a full table.
        batch_size: Items per sample.
        is_prioritized: Sampled by ``priority ** PRIORITY_EXPONENT``, else uniformly.
    """

    columns: Mapping[str, tuple[str, tuple[int, ...]]]
    num_items: int
    batch_size: int
    is_prioritized: bool

    @property
    def item_bytes(self) -> int:
        """Bytes per item."""
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
    """A sampled batch.

    Attributes:
        columns: Arrays of shape ``[batch_size, ...]``, gathered from the items.
        weights: ``[batch_size]``, importance weights with ``IMPORTANCE_EXPONENT``,
            scaled to a maximum of 1; None if sampling is uniform.
        update: Sends new priorities back, ``[batch_size] float64``, or None.
    """

    columns: Columns
    weights: NDArray[Any] | None
    update: Callable[[NDArray[np.float64] | None], object]


class Peer(Protocol):
    """A store with one table, used as its authors advise; created from a `Table`."""

    def insert(self, columns: Columns) -> None:
        """Adds N items, given as arrays of shape ``[N, ...]``."""
        ...

    def flush(self) -> None:
        """Waits until every insert has taken effect."""
        ...

    def sample(self) -> Drawn:
        """Samples a batch."""
        ...

    def close(self) -> None:
        """Ends the store and its processes."""
        ...
