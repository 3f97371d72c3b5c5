"""A run's TensorBoard files, written with the package tensorboard's messages.

The package's own writer has a thread that ends for good on the first failed write. This
one keeps records that the disk refused and writes them again, after the last whole
record.
"""

from __future__ import annotations

import contextlib
import io
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.observe.curves.points import Point

__all__ = ["TensorBoardFile", "has_tensorboard"]

_FLUSH_S = 3.0
# Kept while the disk is full: some thousand points; then the oldest are lost.
_MOST_BYTES = 4 << 20
_PREFIX = "events.out.tfevents."


def has_tensorboard() -> bool:
    """Returns whether the package is installed, without importing it."""
    from importlib.util import find_spec

    return find_spec("tensorboard") is not None


class TensorBoardFile:
    """Writes the points of one call to a file of its own. Not thread-safe.

    The file is made with the first point. Readers drop points of earlier calls from its
    step on, which a killed call wrote after its last checkpoint. If a process of this
    call was killed, they also drop this call's points from the step at which it
    resumed.

    Args:
        folder: ``RUN/tensorboard``; it is made.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._descriptor = -1
        self._size_bytes = 0
        self._records: list[bytes] = []
        self._last_step: int | None = None
        self._flushed_s = -_FLUSH_S

    def add(self, point: Point) -> None:
        """Takes a point; writes waiting points at most every three seconds.

        If the disk refuses, nothing is raised and a later call tries again.

        Raises:
            ImportError: The package is missing, or does not fit its dependencies.
        """
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary

        if self._last_step is None:
            self._keep(Event(wall_time=point.time_s, file_version="brain.Event:2"))
        if self._last_step is None or point.step < self._last_step:
            # Readers drop their points from this step on: after a kill the learner
            # resumed from a checkpoint.
            start = SessionLog(status=SessionLog.START)
            self._keep(
                Event(wall_time=point.time_s, step=point.step, session_log=start)
            )
        self._last_step = point.step
        values = [
            Summary.Value(tag=tag, simple_value=value)
            for tag, value in point.values.items()
        ]
        self._keep(
            Event(
                wall_time=point.time_s,
                step=point.step,
                summary=Summary(value=values),
            )
        )
        self.tick()

    def tick(self) -> None:
        """Writes waiting points, if nothing was written for three seconds."""
        if self._records and self._clock() - self._flushed_s >= _FLUSH_S:
            self._flush()

    def close(self) -> None:
        """Writes the rest and closes the file. A second call does nothing."""
        if self._records:
            self._flush()
        self._records = []
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _keep(self, event: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        buffer = io.BytesIO()
        RecordWriter(buffer).write(event.SerializeToString())
        self._records.append(buffer.getvalue())
        # The first two records give the version and the first step.
        while sum(map(len, self._records)) > _MOST_BYTES and len(self._records) > 3:
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
            # Part of a record would make all later records unreadable.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size_bytes)

    def _new_file(self) -> int:
        """Makes a file whose name sorts after those of earlier calls.

        TensorBoard reads files in the order of their names, which begin with a time.
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
