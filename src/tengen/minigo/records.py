"""The benchmark's examples of self-play: compressed record files, one a game.

Source: MLPerf training v2.1, minigo, ``preprocessing.py``, for what an example has;
TensorFlow, ``tensorflow/core/lib/io/record_writer.h`` for a record and
``tensorflow/core/example`` for the fields (Apache License 2.0).

Legend: R examples, N side of the board.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.experience.rows.imported import MAX_SIDE, NUM_FEATURES, Examples
from tengen.minigo.wire import Message, check_crc, read_bounded
from tengen.run import OtherKindError, reading_file

__all__ = ["Layout", "read_examples", "side_of"]

Layout: TypeAlias = Literal["nchw", "nhwc"]
"""Whether an example's planes lie one after the other, or its points do."""

_WHAT = "examples"
_MAX_BYTES = 1 << 26
_HEADER_BYTES = 12
_CRC_BYTES = 4
# Ones where Black is to move.
_BLACK_PLANE = 8
# A sum of shares in float32.
_TOLERANCE = 1e-3


def read_examples(path: Path, side: int, layout: Layout) -> Examples:
    """Returns what is in a ``.tfrecord.zz`` file.

    Args:
        path: The file.
        side: N.
        layout: Of the planes; files of minigo 0.7 and later have ``nchw``.

    Raises:
        RunError: It is missing, damaged, or of another board.
    """
    rows = []
    with reading_file(_WHAT, path):
        data = memoryview(_inflated(read_bounded(path, _MAX_BYTES)))
        for record in _records(data):
            rows.append(_example(Message(record), side, layout))
    planes = np.empty((len(rows), NUM_FEATURES, side, side), np.uint8)
    policy = np.empty((len(rows), side * side + 1), np.float32)
    outcome = np.empty(len(rows), np.int8)
    for index, row in enumerate(rows):
        planes[index], policy[index], outcome[index] = row
    return Examples(planes, policy, outcome)


def side_of(path: Path) -> int:
    """Returns N of the first example of a file; 0 where there is none.

    Raises:
        RunError: As ``read_examples``.
    """
    with reading_file(_WHAT, path):
        data = memoryview(_inflated(read_bounded(path, _MAX_BYTES)))
        for record in _records(data):
            num_bytes = len(_features(Message(record))["x"].message(1).raw(1))
            side = int((num_bytes / NUM_FEATURES) ** 0.5 + 0.5)
            is_board = num_bytes == NUM_FEATURES * side * side
            if not is_board or not 2 <= side <= MAX_SIDE:
                raise ValueError(f"x has {num_bytes} bytes, not 13 a point of a board")
            return side
    return 0


def _inflated(data: bytes) -> bytes:
    machine = zlib.decompressobj()
    try:
        found = machine.decompress(data, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is not compressed by zlib, {error}") from error
    if machine.unconsumed_tail:
        raise ValueError(f"it has more than {_MAX_BYTES} bytes")
    if not machine.eof or machine.unused_data:
        raise ValueError("it is cut off, or goes on behind its end")
    return found


def _records(data: memoryview) -> Iterator[memoryview]:
    place = 0
    while place < len(data):
        header = data[place : place + _HEADER_BYTES]
        if len(header) < _HEADER_BYTES:
            raise ValueError("a record of it is cut off")
        check_crc(header[:8], int.from_bytes(header[8:], "little"), "a length")
        place += _HEADER_BYTES
        length = int.from_bytes(header[:8], "little")
        if length + _CRC_BYTES > len(data) - place:
            raise ValueError("a record of it is cut off")
        record = data[place : place + length]
        place += length
        crc = int.from_bytes(data[place : place + _CRC_BYTES], "little")
        check_crc(record, crc, "a record")
        place += _CRC_BYTES
        yield record


def _features(example: Message) -> dict[str, Message]:
    found = {
        entry.text(1): entry.message(2) for entry in example.message(1).messages(1)
    }
    for name in ("x", "pi", "outcome"):
        if name not in found:
            raise ValueError(f"an example has no {name}")
    return found


def _example(
    example: Message, side: int, layout: Layout
) -> tuple[NDArray[np.uint8], NDArray[np.float32], int]:
    features = _features(example)
    planes = np.frombuffer(features["x"].message(1).raw(1), np.uint8)
    num_cells = side * side
    if planes.size != NUM_FEATURES * num_cells:
        raise ValueError(f"x is not {NUM_FEATURES} planes of side {side}")
    if layout == "nhwc":
        planes = planes.reshape(num_cells, NUM_FEATURES).T
    planes = planes.reshape(NUM_FEATURES, side, side)
    if planes.max() > 1:
        raise ValueError("x has other numbers than 0 and 1")
    black = int(planes[_BLACK_PLANE, 0, 0])
    if (planes[_BLACK_PLANE] != black).any():
        other = "nchw" if layout == "nhwc" else "nhwc"
        raise OtherKindError(
            f"whose turn it is differs over the board; give --layout {other}"
        )
    raw = features["pi"].message(1).raw(1)
    policy = np.frombuffer(raw, "<f4") if len(raw) % 4 == 0 else np.zeros(0, "<f4")
    if policy.size != num_cells + 1:
        raise ValueError(f"pi is not {num_cells + 1} numbers of float32")
    if not policy.min() >= 0 or not abs(float(policy.sum()) - 1.0) < _TOLERANCE:
        raise ValueError("pi is no distribution")
    won = features["outcome"].message(2).floats(1)
    if won.size != 1 or won[0] not in (-1.0, 0.0, 1.0):
        raise ValueError("outcome is not one of -1, 0 and 1")
    return planes, policy, int(won[0]) * (1 if black else -1)
