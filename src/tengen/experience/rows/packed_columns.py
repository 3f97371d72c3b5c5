"""Training rows in a file: the columns of a batch, packed without loss.

Legend: N rows, C planes, H W board, A actions.

=================  ===============================================================
``plane_rows``     ``[N, bytes] uint8``, as core/inference/packed_rows.h says
``X_bits``         X, an array of 0 and 1, packed
``X_count``        ``[N] uint16``: entries of a row of X ``[N, A]`` that are not 0
``X_action``       places of these entries in the row
``X_entry``        ``float32``, values of these entries
``X_owner``        X ``[N, H, W]``, whole numbers, as ``int8``
X                  anything else
=================  ===============================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core

__all__ = ["pack_columns", "unpack_columns"]

_SPARSE = ("policy", "reply")


def pack_columns(
    columns: Mapping[str, NDArray[Any]], is_native: bool
) -> dict[str, NDArray[Any]]:
    """Returns arrays that ``unpack_columns`` turns into the same columns.

    Args:
        columns: ``[N, ...]`` each, as ``GameWindow.sample`` gives them.
        is_native: Whether the game is one of the core's; a plane then holds zeros and
            at most one other number.
    """
    packed: dict[str, NDArray[Any]] = {}
    for name, column in columns.items():
        if name == "planes":
            layout = _core.RowLayout(column.shape[1:], is_native)
            rows = np.empty((len(column), layout.num_bytes), np.uint8)
            _core.write_rows(layout, column, rows)
            packed["plane_rows"] = rows
        elif name == "legal":
            packed["legal_bits"] = np.packbits(column.reshape(-1))
        elif name in _SPARSE:
            flat = np.flatnonzero(column)
            row, action = np.divmod(flat, column.shape[1])
            counts = np.bincount(row, minlength=len(column))
            packed[f"{name}_count"] = counts.astype(np.uint16)
            packed[f"{name}_action"] = action.astype(np.uint16)
            packed[f"{name}_entry"] = column.reshape(-1)[flat]
        elif name == "ownership" and _is_whole(column):
            packed["ownership_owner"] = column.astype(np.int8)
        else:
            packed[name] = column
    return packed


def unpack_columns(
    packed: Mapping[str, NDArray[Any]],
    shape: tuple[int, int, int],
    num_actions: int,
    is_native: bool,
) -> dict[str, NDArray[Any]]:
    """Inverse of ``pack_columns``.

    Args:
        packed: What ``pack_columns`` returned.
        shape: C, H and W.
        num_actions: A.
        is_native: As given to ``pack_columns``.

    Returns:
        The columns; they may be written to.

    Raises:
        KeyError: An array is missing.
        ValueError: The arrays do not fit together.
    """
    rows = packed["plane_rows"]
    num_rows = len(rows)
    layout = _core.RowLayout(shape, is_native)
    if rows.dtype != np.uint8 or rows.shape != (num_rows, layout.num_bytes):
        raise ValueError("plane_rows are of another shape")
    columns: dict[str, NDArray[Any]] = {
        "planes": np.empty((num_rows, *shape), np.float32)
    }
    _core.read_rows(layout, rows, columns["planes"])
    for name, array in packed.items():
        stem, _, kind = name.rpartition("_")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has what is no number")
        if kind == "bits":
            if array.dtype != np.uint8 or array.size != -(-num_rows * num_actions // 8):
                raise ValueError(f"{name} are not a bit an action")
            bits = np.unpackbits(array, count=num_rows * num_actions)
            columns[stem] = bits.reshape(num_rows, num_actions)
        elif kind == "owner":
            columns[stem] = array.astype(np.float32)
        elif kind == "count":
            num_entries = len(packed[f"{stem}_entry"])
            if array.shape != (num_rows,) or array.sum(dtype=np.int64) != num_entries:
                raise ValueError(f"{name} is not the number of its entries")
            action = packed[f"{stem}_action"]
            if action.dtype.kind != "u":
                raise ValueError(f"{stem}_action are of another type")
            dense = np.zeros((num_rows, num_actions), np.float32)
            row = np.repeat(np.arange(num_rows), array)
            dense[row, action] = packed[f"{stem}_entry"]
            columns[stem] = dense
        elif kind not in ("action", "entry", "rows"):
            if array.dtype != np.float32 or len(array) != num_rows:
                raise ValueError(f"{name} is of another type or length")
            columns[name] = array.copy()
    return columns


def _is_whole(column: NDArray[np.float32]) -> bool:
    return bool((column == np.rint(column)).all() and (np.abs(column) <= 127).all())
