"""The encoding of TensorFlow's files: protocol buffers and checksums.

Source: the Protocol Buffers documentation, "Encoding": a message is a row of fields,
each a key, ``number << 3 | kind``, and a value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen import _core

__all__ = ["Message", "check_crc", "read_bounded", "read_varint"]

_MAX_VARINT_BYTES = 10
# Far more than a graph has nodes.
_MAX_FIELDS = 1 << 17
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Added to a checksum by whoever stores one beside what it is of.
_MASK_DELTA = 0xA282EAD8
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}


def read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """Returns a number of 64 bits, and the place behind it.

    Args:
        data: Bytes.
        place: Where the number begins, at least 0.

    Raises:
        ValueError: It does not end, or is longer than 64 bits.
    """
    value = 0
    for index, byte in enumerate(data[place : place + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, place + index + 1
    raise ValueError("a number in it has no end or more than 64 bits")


class Message:
    """The fields of a message by number, each as often as it is there.

    Fields that nobody asks for are skipped. Nothing is copied.
    """

    def __init__(self, data: memoryview) -> None:
        """Finds the fields.

        Args:
            data: The message, its bytes alone.

        Raises:
            ValueError: A field does not end in the message, or is of no known kind, or
                they are too many.
        """
        self._fields: dict[tuple[int, int], list[int | memoryview]] = {}
        place = num_fields = 0
        while place < len(data):
            num_fields += 1
            if num_fields > _MAX_FIELDS:
                raise ValueError(f"it has more than {_MAX_FIELDS} fields in one place")
            key, place = read_varint(data, place)
            number, kind = key >> 3, key & 7
            value: int | memoryview
            if kind == _VARINT:
                value, place = read_varint(data, place)
            else:
                if kind == _BYTES:
                    length, place = read_varint(data, place)
                elif kind in _WIDTHS:
                    length = _WIDTHS[kind]
                else:
                    raise ValueError(f"a field in it is of kind {kind}")
                if length > len(data) - place:
                    raise ValueError("a field in it is longer than what holds it")
                value = data[place : place + length]
                place += length
            self._fields.setdefault((number, kind), []).append(value)

    def whole(self, number: int, default: int = 0) -> int:
        """Returns a whole number, not negative; the last one, as the format says."""
        found = self._fields.get((number, _VARINT))
        value = found[-1] if found else default
        assert isinstance(value, int)
        return value

    def fixed32(self, number: int) -> int:
        """Returns a whole number of 32 bits, 0 where there is none."""
        found = self._parts(number, _FIXED32)
        return int.from_bytes(found[-1], "little") if found else 0

    def raw(self, number: int) -> memoryview:
        """Returns bytes, none where there are none."""
        found = self._parts(number, _BYTES)
        return found[-1] if found else memoryview(b"")

    def text(self, number: int) -> str:
        """Returns a text; what is no UTF-8 in it is replaced."""
        return bytes(self.raw(number)).decode(errors="replace")

    def messages(self, number: int) -> Iterator[Message]:
        """Yields the messages of a field, in order.

        Raises:
            ValueError: One is malformed.
        """
        return map(Message, self._parts(number, _BYTES))

    def message(self, number: int) -> Message:
        """Returns the last message of a field; one without fields if there is none.

        Raises:
            ValueError: It is malformed.
        """
        return Message(self.raw(number))

    def floats(self, number: int) -> NDArray[np.float32]:
        """Returns numbers ``[n]``, be they packed or a field each.

        Raises:
            ValueError: Packed ones are of no whole number of bytes each.
        """
        parts = self._parts(number, _BYTES) + self._parts(number, _FIXED32)
        return np.frombuffer(b"".join(parts), "<f4")

    def _parts(self, number: int, kind: int) -> list[memoryview]:
        found = self._fields.get((number, kind), [])
        return [part for part in found if isinstance(part, memoryview)]


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Returns a file's bytes.

    Raises:
        OSError: It cannot be read.
        ValueError: It has more than ``most_bytes``.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ValueError(f"it has {size} bytes, and at most {most_bytes} are read")
        return file.read(most_bytes)


def check_crc(data: bytes | memoryview, stored: int, what: str) -> None:
    """Checks a masked CRC-32C.

    Source: TensorFlow, ``tensorflow/core/lib/hash/crc32c.h``: the checksum is turned
    right by 15 bits, and a constant is added.

    Args:
        data: What it is of.
        stored: The checksum in the file.
        what: For the message.

    Raises:
        ValueError: It is of other data.
    """
    crc = _core.crc32c(bytes(data))
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    if masked != stored:
        raise ValueError(f"the checksum of {what} is wrong")
