"""TensorFlow's checkpoints of version 2: an index, and files of bare numbers.

Source: TensorFlow, ``tensorflow/core/protobuf/tensor_bundle.proto`` (Apache License
2.0) for the fields, and ``tensorflow/core/util/tensor_bundle``.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.minigo.files import check_crc, read_bounded, reading
from tengen.minigo.table import read_table
from tengen.minigo.tensors import DTYPES, read_shape
from tengen.minigo.wire import Message

__all__ = ["Checkpoint"]

_WHAT = "checkpoint"
_MAX_INDEX_BYTES = 1 << 22
_MAX_SHARDS = 1000
_LITTLE = 0


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int


class Checkpoint:
    """The tensors of ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``.

    Attributes:
        name: What messages call it, with its path.
        shapes: Of each tensor of a type in ``DTYPES``.
    """

    def __init__(self, prefix: Path) -> None:
        """Reads the index.

        Args:
            prefix: The path without ``.index``.

        Raises:
            RunError: It is missing or damaged.
        """
        self.name = f"{_WHAT} ({prefix})"
        self._prefix = prefix
        path = Path(f"{prefix}.index")
        with reading(_WHAT, path):
            table = read_table(memoryview(read_bounded(path, _MAX_INDEX_BYTES)))
            header = Message(table.pop(b"", memoryview(b"")))
            self._num_shards = header.whole(1)
            if not 1 <= self._num_shards <= _MAX_SHARDS:
                raise ValueError(f"it has {self._num_shards} files of numbers")
            if header.whole(2) != _LITTLE:
                raise ValueError("its numbers are big-endian")
            entries = {
                key.decode(errors="replace"): self._entry(Message(value))
                for key, value in table.items()
            }
        self._entries = {key: entry for key, entry in entries.items() if entry}
        self.shapes = {key: entry.shape for key, entry in self._entries.items()}

    def read(self, name: str) -> NDArray[np.generic]:
        """Returns a tensor that ``shapes`` has.

        Raises:
            RunError: Its file is missing or damaged.
        """
        entry = self._entries[name]
        path = Path(f"{self._prefix}.data-{entry.shard:05d}-of-{self._num_shards:05d}")
        with reading(_WHAT, path), open(path, "rb") as file:
            # Before so much memory is taken.
            if entry.offset + entry.size > os.fstat(file.fileno()).st_size:
                raise ValueError(f"{name} lies beyond its end")
            file.seek(entry.offset)
            data = file.read(entry.size)
            check_crc(data, entry.crc, name)
            return np.frombuffer(data, entry.dtype).reshape(entry.shape)

    def _entry(self, message: Message) -> _Entry | None:
        """Returns an entry of the index; None for one of a type that is not read."""
        dtype = DTYPES.get(message.whole(1))
        is_sliced = bool(message.raw(7))
        if dtype is None or is_sliced:
            return None
        entry = _Entry(
            dtype=dtype,
            shape=read_shape(message.message(2)),
            shard=message.whole(3),
            offset=message.whole(4),
            size=message.whole(5),
            crc=message.fixed32(6),
        )
        if entry.size != math.prod(entry.shape) * dtype.itemsize:
            raise ValueError("a tensor in it is of another size than its shape says")
        if entry.shard >= self._num_shards:
            raise ValueError("a tensor in it is in a file beyond the last")
        return entry
