"""Decodes TensorFlow's files: protocol buffers and checksums.

Source: the Protocol Buffers documentation, "Encoding": a message is a sequence of
fields, and a field is a key (``number << 3 | kind``) followed by a value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tengen import _core

_MAX_VARINT_BYTES = 10
# Maximum number of fields of a message; a graph's nodes are far fewer.
_MAX_FIELDS = 1 << 17
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# TensorFlow masks a checksum that is stored beside its data with this constant.
_MASK_DELTA = 0xA282EAD8
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}


def read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """Decodes a varint; returns the 64-bit number and the offset of the byte after it.

    Args:
        data: The bytes that contain the number.
        place: Offset of the number in ``data``, at least 0.

    Raises:
        ValueError: The data ends inside the number, or the number exceeds 64 bits.
    """
    value = 0
    for index, byte in enumerate(data[place : place + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, place + index + 1
    raise ValueError("a number in it is unterminated or longer than 64 bits")


class Message:
    """A parsed protocol buffer message: all values of each field, by field number.

    Callers read the fields that they need. Bytes are not copied.
    """

    def __init__(self, data: memoryview) -> None:
        """Parses the message into fields.

        Args:
            data: The bytes of the message, and no others.

        Raises:
            ValueError: A field extends beyond the message or has an unknown kind, or
                there are too many fields.
        """
        self._fields: dict[tuple[int, int], list[int | memoryview]] = {}
        place = num_fields = 0
        while place < len(data):
            num_fields += 1
            if num_fields > _MAX_FIELDS:
                raise ValueError(f"it has more than {_MAX_FIELDS} fields in a message")
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
                    raise ValueError(f"a field in it has kind {kind}")
                if length > len(data) - place:
                    raise ValueError("a field in it is longer than its message")
                value = data[place : place + length]
                place += length
            self._fields.setdefault((number, kind), []).append(value)

    def whole(self, number: int, default: int = 0) -> int:
        """Returns unsigned integer field ``number``, its last value if repeated."""
        found = self._fields.get((number, _VARINT))
        value = found[-1] if found else default
        assert isinstance(value, int)
        return value

    def fixed32(self, number: int) -> int:
        """Returns 32-bit integer field ``number``; 0 if the field is absent."""
        found = self._parts(number, _FIXED32)
        return int.from_bytes(found[-1], "little") if found else 0

    def raw(self, number: int) -> memoryview:
        """Returns bytes field ``number``; empty if the field is absent."""
        found = self._parts(number, _BYTES)
        return found[-1] if found else memoryview(b"")

    def text(self, number: int) -> str:
        """Returns string field ``number``; invalid UTF-8 is replaced."""
        return bytes(self.raw(number)).decode(errors="replace")

    def messages(self, number: int) -> Iterator[Message]:
        """Yields the nested messages of field ``number``, in order.

        Raises:
            ValueError: A message is malformed.
        """
        return map(Message, self._parts(number, _BYTES))

    def message(self, number: int) -> Message:
        """Returns the last nested message of field ``number``; empty if absent.

        Raises:
            ValueError: The message is malformed.
        """
        return Message(self.raw(number))

    def floats(self, number: int) -> NDArray[np.float32]:
        """Returns repeated float field ``number``, packed or not, as ``[n] float32``.

        Raises:
            ValueError: The length of the packed bytes is not a multiple of 4.
        """
        parts = self._parts(number, _BYTES) + self._parts(number, _FIXED32)
        return np.frombuffer(b"".join(parts), "<f4")

    def _parts(self, number: int, kind: int) -> list[memoryview]:
        found = self._fields.get((number, kind), [])
        return [part for part in found if isinstance(part, memoryview)]


def check_crc(data: bytes | memoryview, stored: int, what: str) -> None:
    """Verifies data against a masked CRC-32C checksum.

    Source: TensorFlow, ``tensorflow/core/lib/hash/crc32c.h``: to mask a checksum, it is
    rotated right by 15 bits and a constant is added.

    Args:
        data: The bytes that the checksum covers.
        stored: The masked checksum in the file.
        what: Name of the data, for the error message.

    Raises:
        ValueError: The checksum does not match the data.
    """
    crc = _core.crc32c(bytes(data))
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    if masked != stored:
        raise ValueError(f"the checksum of {what} is wrong")
