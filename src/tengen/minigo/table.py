"""The sorted tables of keys and values that TensorFlow's checkpoints begin with.

Source: LevelDB, ``doc/table_format.md``: blocks of entries whose keys share their
beginnings, an index of the blocks, and a footer that says where the index is.
"""

from __future__ import annotations

from tengen.minigo.files import check_crc
from tengen.minigo.wire import read_varint

__all__ = ["read_table"]

_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER_BYTES = 48
# Behind a block: how it is compressed, and its checksum.
_TRAILER_BYTES = 5
# Far more and longer ones than a network's tensors have.
_MAX_KEYS = 1 << 16
_MAX_KEY_BYTES = 1024


def read_table(data: memoryview) -> dict[bytes, memoryview]:
    """Returns the values by key.

    Raises:
        ValueError: It is no table, a checksum is wrong, or it is compressed.
    """
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or footer[-len(_MAGIC) :] != _MAGIC:
        raise ValueError("it is no table of keys")
    place = 0
    for _ in range(2):
        # Of an index that is not used, and before the one that is.
        _, place = read_varint(footer, place)
    index = _block(data, footer[place:])
    found: dict[bytes, memoryview] = {}
    left = len(data)
    for handle in _entries(index).values():
        block = _block(data, handle)
        left -= len(block)
        # Else a small file could be read for hours.
        if left < 0:
            raise ValueError("its blocks lie over each other")
        for key, value in _entries(block).items():
            if key in found or len(found) == _MAX_KEYS:
                raise ValueError("a key is in it twice, or keys are too many")
            found[key] = value
    return found


def _block(data: memoryview, handle: memoryview) -> memoryview:
    offset, place = read_varint(handle, 0)
    size, _ = read_varint(handle, place)
    end = offset + size
    if end + _TRAILER_BYTES > len(data):
        raise ValueError("a block of it lies beyond its end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER_BYTES], "little")
    check_crc(data[offset : end + 1], stored, "a block")
    if data[end] != 0:
        raise ValueError("it is compressed, as TensorFlow writes none since 1.2")
    return data[offset:end]


def _entries(block: memoryview) -> dict[bytes, memoryview]:
    """Returns the values of a block by key."""
    # Behind the entries are places for a faster search, four bytes each, and how many.
    num_restarts = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (num_restarts + 1)
    if len(block) < 4 or end < 0:
        raise ValueError("a block of it is too short")
    found: dict[bytes, memoryview] = {}
    place, key = 0, b""
    while place < end:
        shared, place = read_varint(block, place)
        num_own, place = read_varint(block, place)
        length, place = read_varint(block, place)
        if shared > len(key) or num_own + length > end - place:
            raise ValueError("an entry of it is longer than its block")
        if shared + num_own > _MAX_KEY_BYTES or len(found) == _MAX_KEYS:
            raise ValueError("a key of it is too long, or keys are too many")
        key = key[:shared] + bytes(block[place : place + num_own])
        place += num_own
        found[key] = block[place : place + length]
        place += length
    return found
