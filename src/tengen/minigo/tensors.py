"""Reads named tensors from TensorFlow's version-2 checkpoints and frozen graphs.

Source: TensorFlow (Apache License 2.0), ``tensorflow/core/framework``: ``graph.proto``,
``node_def.proto``, ``attr_value.proto`` and ``tensor.proto``;
``tensorflow/core/protobuf/tensor_bundle.proto`` and
``tensorflow/core/util/tensor_bundle``. A checkpoint consists of an index and of files
with raw tensor data. The index is a LevelDB table (``doc/table_format.md``): blocks of
sorted entries with prefix-compressed keys, an index block that lists these blocks, and
a footer that locates the index block.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.minigo.wire import Message, check_crc, read_bounded, read_varint
from tengen.run import reading_file

DTYPES: dict[int, np.dtype[np.generic]] = {1: np.dtype("<f4"), 9: np.dtype("<i8")}
"""Supported dtypes, by TensorFlow's type number. Tensors of other types are skipped."""

_MAX_AXES = 8
_MAX_ENTRIES = 1 << 26


class TensorFile(Protocol):
    """A file of named tensors, which are read on demand.

    Attributes:
        name: The file's kind and path, for messages.
        shapes: Shape of each tensor that can be read, by name.
    """

    name: str
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str) -> NDArray[np.generic]:
        """Returns the tensor ``name``, which must be in ``shapes``.

        Raises:
            RunError: The tensor is damaged.
        """


def read_shape(message: Message) -> tuple[int, ...]:
    """Returns the shape in a ``TensorShapeProto``.

    Raises:
        ValueError: A size is unknown, or the tensor is too large.
    """
    axes = tuple(axis.whole(1) for axis in message.messages(2))
    # The size -1 means unknown. It is decoded as a huge unsigned number and rejected.
    if len(axes) > _MAX_AXES or math.prod(axes) > _MAX_ENTRIES:
        raise ValueError("a tensor in it has no size, or is too large")
    return axes


_GRAPH = "graph"
_MAX_BYTES = 1 << 26
_FLOAT = 1


class FrozenGraph:
    """The float32 constants of a frozen ``GraphDef``, which include its weights.

    Attributes:
        name: The words ``graph (PATH)``, for messages.
        shapes: Shape of each float32 constant, by name.
    """

    def __init__(self, path: Path) -> None:
        """Reads the graph. ``read`` decodes its tensors.

        Args:
            path: The ``.pb`` file.

        Raises:
            RunError: The file is missing, damaged or not a graph.
        """
        self.name = f"{_GRAPH} ({path})"
        self._path = path
        self._constants: dict[str, memoryview] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        with reading_file(_GRAPH, path):
            graph = Message(memoryview(read_bounded(path, _MAX_BYTES)))
            for node in graph.messages(1):
                if node.text(2) == "Const":
                    self._add(node)

    def read(self, name: str) -> NDArray[np.generic]:
        """Returns the constant ``name``, which must be in ``shapes``.

        Raises:
            RunError: The constant stores no values, or more than its shape holds.
        """
        shape = self.shapes[name]
        with reading_file(_GRAPH, self._path):
            tensor = Message(self._constants[name])
            content = tensor.raw(4)
            if content:
                array = np.frombuffer(content, DTYPES[_FLOAT])
            else:
                array = tensor.floats(5)
                num_entries = math.prod(shape)
                if 0 < len(array) < num_entries:
                    # The format omits repetitions of the last value.
                    array = np.pad(array, (0, num_entries - len(array)), "edge")
            return array.reshape(shape)

    def _add(self, node: Message) -> None:
        for attribute in node.messages(5):
            if attribute.text(1) == "value":
                data = attribute.message(2).raw(8)
                tensor = Message(data)
                if tensor.whole(1) == _FLOAT:
                    name = node.text(1)
                    self._constants[name] = data
                    self.shapes[name] = read_shape(tensor.message(2))


_CHECKPOINT = "checkpoint"
_MAX_INDEX_BYTES = 1 << 22
_MAX_SHARDS = 1000
_LITTLE = 0
_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER_BYTES = 48
# Each block is followed by its compression type and its checksum.
_TRAILER_BYTES = 5
# Limits far above the number and the length of a network's tensor names.
_MAX_KEYS = 1 << 16
_MAX_KEY_BYTES = 1024


@dataclass(frozen=True)
class _Entry:
    """The dtype, shape, location and checksum of a tensor in a checkpoint."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int


class Checkpoint:
    """The tensors of ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``.

    Attributes:
        name: The words ``checkpoint (PREFIX)``, for messages.
        shapes: Shape of each unsliced tensor of a type in ``DTYPES``, by name.
    """

    def __init__(self, prefix: Path) -> None:
        """Reads the index of the checkpoint.

        Args:
            prefix: The path of the index without ``.index``.

        Raises:
            RunError: The index is missing or damaged.
        """
        self.name = f"{_CHECKPOINT} ({prefix})"
        self._prefix = prefix
        path = Path(f"{prefix}.index")
        with reading_file(_CHECKPOINT, path):
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
        """Returns the tensor ``name``, which must be in ``shapes``.

        Raises:
            RunError: The tensor's file is missing or damaged.
        """
        entry = self._entries[name]
        path = Path(f"{self._prefix}.data-{entry.shard:05d}-of-{self._num_shards:05d}")
        with reading_file(_CHECKPOINT, path), open(path, "rb") as file:
            # Check the size before allocating memory for the tensor.
            if entry.offset + entry.size > os.fstat(file.fileno()).st_size:
                raise ValueError(f"{name} is beyond its end")
            file.seek(entry.offset)
            data = file.read(entry.size)
            check_crc(data, entry.crc, name)
            return np.frombuffer(data, entry.dtype).reshape(entry.shape)

    def _entry(self, message: Message) -> _Entry | None:
        """Parses an index entry; returns None for a sliced tensor or another dtype."""
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
            raise ValueError("the size of a tensor in it does not match the shape")
        if entry.shard >= self._num_shards:
            raise ValueError("a tensor in it is in a file beyond the last")
        return entry


def read_table(data: memoryview) -> dict[bytes, memoryview]:
    """Returns the values of a LevelDB table by key.

    Raises:
        ValueError: The data is not a table or is compressed, or a checksum is wrong.
    """
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or footer[-len(_MAGIC) :] != _MAGIC:
        raise ValueError("it is not a table of keys")
    place = 0
    for _ in range(2):
        # Skip the two varints of the metaindex's handle; the index's handle follows.
        _, place = read_varint(footer, place)
    index = _block(data, footer[place:])
    found: dict[bytes, memoryview] = {}
    left = len(data)
    for handle in _entries(index).values():
        block = _block(data, handle)
        left -= len(block)
        # Reject overlapping blocks: a small file of them could take hours to read.
        if left < 0:
            raise ValueError("its blocks overlap")
        for key, value in _entries(block).items():
            if key in found or len(found) == _MAX_KEYS:
                raise ValueError("it has a key twice, or too many keys")
            found[key] = value
    return found


def _block(data: memoryview, handle: memoryview) -> memoryview:
    offset, place = read_varint(handle, 0)
    size, _ = read_varint(handle, place)
    end = offset + size
    if end + _TRAILER_BYTES > len(data):
        raise ValueError("one of its blocks is beyond its end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER_BYTES], "little")
    check_crc(data[offset : end + 1], stored, "a block")
    if data[end] != 0:
        raise ValueError("it is compressed, unlike those of TensorFlow 1.2 and later")
    return data[offset:end]


def _entries(block: memoryview) -> dict[bytes, memoryview]:
    """Returns the values of a LevelDB block by key."""
    # After the entries come 4-byte restart offsets, and the number of these offsets.
    num_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (num_restarts + 1)
    if len(block) < 4 or end < 0:
        raise ValueError("one of its blocks is too short")
    found: dict[bytes, memoryview] = {}
    place, key = 0, b""
    while place < end:
        shared, place = read_varint(block, place)
        num_own, place = read_varint(block, place)
        length, place = read_varint(block, place)
        if shared > len(key) or num_own + length > end - place:
            raise ValueError("one of its entries is longer than its block")
        if shared + num_own > _MAX_KEY_BYTES or len(found) == _MAX_KEYS:
            raise ValueError("it has a key that is too long, or too many keys")
        key = key[:shared] + bytes(block[place : place + num_own])
        place += num_own
        found[key] = block[place : place + length]
        place += length
    return found
