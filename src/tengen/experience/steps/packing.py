"""Packing of bool planes: a table stores eight bools in a byte, invisibly to users.

Writers pack steps, and a draw unpacks the steps of its batch. Unpacking takes about as
long as the copying that it saves (`benchmarks/results/packing.md`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.store import Column

__all__ = ["pack_steps", "packed_columns", "unpack", "unpack_batch"]

# Columns with fewer bools are not packed, since little would be gained.
_LEAST = 64


def packed_columns(
    columns: Mapping[str, Column], whole: Container[str] = ()
) -> dict[str, Column]:
    """Returns the columns as a table stores them.

    Args:
        columns: Columns of a step.
        whole: Names of columns that must not be packed.
    """
    return {
        name: Column(dtype="uint8", shape=(-(-math.prod(column.shape) // 8),))
        if column.dtype == "bool"
        and math.prod(column.shape) >= _LEAST
        and name not in whole
        else column
        for name, column in columns.items()
    }


def pack_steps(
    steps: Mapping[str, NDArray[Any]], stored: Mapping[str, Column]
) -> dict[str, NDArray[Any]]:
    """Returns steps as a table stores them.

    Args:
        steps: ``[N, K, ...]`` each.
        stored: The table's columns.
    """
    return {
        name: np.packbits(array.reshape(*array.shape[:2], -1), axis=-1)
        if array.dtype == np.bool_ and stored[name].dtype == "uint8"
        else array
        for name, array in steps.items()
    }


def unpack_batch(
    drawn: Mapping[str, Any],
    columns: Mapping[str, Column],
    stored: Mapping[str, Column],
) -> dict[str, Any]:
    """Returns the columns of a batch by flat name, as they were before ``pack_steps``.

    Args:
        drawn: The table's columns, nested.
        columns: Columns of a step, by flat name.
        stored: The table's columns.
    """
    flat = dict(_flat(drawn))
    for name, column in columns.items():
        if stored[name] != column:
            flat[name] = unpack(flat[name], column.shape)
    return flat


def _flat(columns: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    """Yields nested columns by their flat names."""
    for name, column in columns.items():
        if isinstance(column, Mapping):
            yield from _flat(column, f"{where}{name}/")
        else:
            yield f"{where}{name}", column


def unpack(packed: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Returns the bools of steps.

    Args:
        packed: ``[B, T, num_bytes]``.
        shape: Shape of one step.

    Returns:
        ``[B, T, *shape]``.
    """
    bits = np.unpackbits(packed, axis=-1, count=math.prod(shape))
    return bits.view(np.bool_).reshape(*packed.shape[:2], *shape)
