"""Items of declared columns: how an environment's unroll becomes bytes and back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check
from tengen.errors import RunError, UsageError

__all__ = ["ColumnSpec", "Item", "ItemSchema"]

_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ColumnSpec:
    """One array of every item."""

    name: str
    """As in the batch."""

    dtype: str
    """A numpy name of a bool, integer or float type, such as ``uint8``."""

    shape: tuple[int, ...]
    """Of one item, such as ``(T + 1, 84, 84)``."""

    def __post_init__(self) -> None:
        check(
            np.dtype(self.dtype).kind in "biuf",
            "dtype",
            self.dtype,
            "must be a bool, integer or float type; convert the column",
        )


@dataclass(frozen=True)
class Item:
    """One item: who sent it, as which of theirs, and its arrays.

    Attributes:
        writer: The sender's name, at most 255 bytes.
        sequence: The sender's own count, increasing.
        columns: The arrays, by name.
    """

    writer: str
    sequence: int
    columns: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ItemSchema:
    """The columns of every item of a table.

    Bytes of an item: u8 version, u8 length of the writer's name, the name, u64
    sequence, then each column's little-endian elements in C order, in the order
    declared.

    Attributes:
        columns: What each item holds.
    """

    columns: tuple[ColumnSpec, ...]

    def check(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Raises UsageError unless ``columns`` are exactly those declared."""
        known = {spec.name for spec in self.columns}
        if set(columns) != known:
            raise UsageError(
                f"columns ({', '.join(sorted(columns))}) must be "
                f"{', '.join(sorted(known))}; send what the schema declares"
            )
        for spec in self.columns:
            array = columns[spec.name]
            if array.dtype != np.dtype(spec.dtype) or array.shape != spec.shape:
                raise UsageError(
                    f"column {spec.name} ({array.dtype} {array.shape}) must be "
                    f"{spec.dtype} {spec.shape}; send what the schema declares"
                )

    def encode(self, item: Item) -> bytes:
        """Returns the bytes of an item whose columns were checked."""
        name = item.writer.encode()
        check(
            0 < len(name) < 256,
            "writer",
            item.writer,
            "must be 1 to 255 bytes long; choose a shorter name",
        )
        parts = [struct.pack("<BB", _VERSION, len(name)), name]
        parts.append(struct.pack("<Q", item.sequence))
        for spec in self.columns:
            array = item.columns[spec.name]
            parts.append(array.astype(_little(spec), copy=False).tobytes())
        return b"".join(parts)

    def decode(self, data: bytes) -> Item:
        """Returns the item of ``encode``'s bytes; its arrays are read-only views.

        Raises:
            RunError: The bytes are damaged or of a newer version.
        """
        if len(data) < 2 or data[0] != _VERSION:
            raise RunError(
                f"item version ({data[:1].hex()}) must be {_VERSION:02x}; "
                f"use the release that wrote it"
            )
        start = 2 + data[1]
        fixed = 8 + sum(self._num_bytes(spec) for spec in self.columns)
        if len(data) != start + fixed:
            raise RunError(
                f"item ({len(data)} bytes) must have {start + fixed} by its schema; "
                f"the bytes are damaged"
            )
        (sequence,) = struct.unpack_from("<Q", data, start)
        offset = start + 8
        columns = {}
        for spec in self.columns:
            count = int(np.prod(spec.shape, dtype=np.int64))
            array = np.frombuffer(data, _little(spec), count, offset)
            columns[spec.name] = array.reshape(spec.shape)
            offset += self._num_bytes(spec)
        return Item(data[2:start].decode(), sequence, columns)

    def to_list(self) -> list[dict[str, Any]]:
        """Returns JSON values that ``from_list`` takes."""
        return [
            {"name": spec.name, "dtype": spec.dtype, "shape": list(spec.shape)}
            for spec in self.columns
        ]

    @classmethod
    def from_list(cls, data: list[dict[str, Any]]) -> ItemSchema:
        """Inverse of ``to_list``."""
        return cls(
            tuple(
                ColumnSpec(
                    name=spec["name"], dtype=spec["dtype"], shape=tuple(spec["shape"])
                )
                for spec in data
            )
        )

    def _num_bytes(self, spec: ColumnSpec) -> int:
        return int(np.prod(spec.shape, dtype=np.int64)) * np.dtype(spec.dtype).itemsize


def _little(spec: ColumnSpec) -> np.dtype[Any]:
    return np.dtype(spec.dtype).newbyteorder("<")
