"""A run's TensorBoard files, written without the package tensorboard.

The package would add gRPC and 50 MB of dependencies for two protocol buffer messages,
and its writer thread stops permanently after the first failed write. This writer keeps
records that it could not write, and retries after the last complete record.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from tengen.observe.curves.points import Point

_FLUSH_S = 3.0
_PREFIX = "events.out.tfevents."

# Field numbers in tensorboard/compat/proto/event.proto and summary.proto.
_STEP, _FILE_VERSION, _SUMMARY, _SESSION_LOG = 2, 3, 5, 7
_SESSION_STATUS, _SESSION_START = 1, 1


class TensorBoardFile:
    """Writes the points of one call to a TensorBoard file. Not thread-safe.

    The first point creates the file. Readers then drop the points of earlier calls from
    this point's step on, because a killed call may have written points after its last
    checkpoint. If a process of this call is killed, readers also drop this call's
    points from the step at which the learner resumes.

    Args:
        folder: ``RUN/tensorboard``, created if missing.
        clock: Returns a monotonic time in seconds.

    Attributes:
        most_bytes: Maximum size of the buffer while the disk is full, for some thousand
            points; beyond it the oldest points are dropped.
    """

    most_bytes = 4 << 20

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._descriptor = -1
        self._size_bytes = 0
        self._records: list[bytes] = []
        self._last_step: int | None = None
        self._flushed_s = -_FLUSH_S

    def add(self, point: Point) -> None:
        """Adds a point; writes buffered points at most every three seconds.

        Never raises if a write fails; a later call retries the write.
        """
        step = _number(_STEP, point.step)
        if self._last_step is None:
            self._keep(point, _text(_FILE_VERSION, b"brain.Event:2"))
        if self._last_step is None or point.step < self._last_step:
            # Make readers drop earlier points from this step on, because after a kill
            # the learner resumes from a checkpoint.
            start = _number(_SESSION_STATUS, _SESSION_START)
            self._keep(point, step + _text(_SESSION_LOG, start))
        self._last_step = point.step
        values = (_value(tag, value) for tag, value in point.values.items())
        self._keep(point, step + _text(_SUMMARY, b"".join(values)))
        self.tick()

    def tick(self) -> None:
        """Writes buffered points, if the last write is at least three seconds ago."""
        if self._records and self._clock() - self._flushed_s >= _FLUSH_S:
            self._flush()

    def close(self) -> None:
        """Writes buffered points and closes the file. A second call does nothing."""
        if self._records:
            self._flush()
        self._records = []
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _keep(self, point: Point, fields: bytes) -> None:
        wall_time = b"\x09" + struct.pack("<d", point.time_s)
        self._records.append(_record(wall_time + fields))
        # Keep the first two records, which have the file version and the session start.
        while sum(map(len, self._records)) > self.most_bytes and len(self._records) > 3:
            del self._records[2]

    def _flush(self) -> None:
        self._flushed_s = self._clock()
        data = b"".join(self._records)
        try:
            if self._descriptor < 0:
                self._descriptor = self._new_file()
            num_written = os.pwrite(self._descriptor, data, self._size_bytes)
            is_whole = num_written == len(data)
        except OSError:
            is_whole = False
        if is_whole:
            self._size_bytes += len(data)
            self._records = []
        elif self._descriptor >= 0:
            # Remove a partial record, which would make all later records unreadable.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)

    def _new_file(self) -> int:
        """Creates a file whose name sorts after the names of earlier calls' files.

        TensorBoard reads files in the order of their names, which contain a time.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        stamps = [
            path.name.removeprefix(_PREFIX).partition(".")[0]
            for path in self._folder.glob(f"{_PREFIX}*")
        ]
        later = [int(stamp) + 1 for stamp in stamps if stamp.isdecimal()]
        stamp = max([int(time.time()), *later])
        name = f"{_PREFIX}{stamp:010}.{socket.gethostname()}.{os.getpid()}"
        path = self._folder / name
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)


def _record(event: bytes) -> bytes:
    """Returns an event message as a record in the TFRecord format."""
    length = struct.pack("<Q", len(event))
    return length + _checksum(length) + event + _checksum(event)


def _checksum(data: bytes) -> bytes:
    from tengen import _core  # imported here, because readers of runs need no core

    crc = _core.crc32c(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)


def _value(tag: str, value: float) -> bytes:
    """Encodes a Summary's ``value``; numbers beyond float32 become infinite."""
    simple_value = b"\x15" + struct.pack("<f", ctypes.c_float(value).value)
    return _text(1, _text(1, tag.encode()) + simple_value)


def _number(field: int, value: int) -> bytes:
    """Encodes a field with an integer value."""
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    """Encodes a field with a string or message value."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Encodes a non-negative integer as a varint, seven bits per byte, lowest first."""
    digits = []
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
