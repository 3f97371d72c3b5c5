"""Writes and reads journals, which store games durably one frame at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tengen import _core
from tengen.errors import DiskFullError, RunError, UsageError


@contextmanager
def core_errors() -> Iterator[None]:
    """Converts C++ errors: SchemaError to UsageError, others to RunError.

    A full disk raises DiskFullError, a subclass of RunError.
    """
    try:
        yield
    except _core.SchemaError as error:
        raise UsageError(str(error)) from error
    except _core.DiskFullError as error:
        raise DiskFullError(str(error)) from error
    except _core.CoreError as error:
        raise RunError(str(error)) from error


class OpenSegment:
    """A journal that is open for writing. Thread-safe.

    Attributes:
        sink: Receives finished games from the self-play engine (``_core.GameSink``).
        path: Path of the journal.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any]) -> None:
        self.path = path
        with core_errors():
            self._journal = _core.Journal(str(path), json.dumps(meta, sort_keys=True))
            self.sink = _core.JournalSink(self._journal)

    def append(self, frame: bytes) -> None:
        """Appends one frame. Blocks only while the write buffer of 64 MiB is full.

        Raises:
            RunError: The disk is full or fails. The frame is not appended, but earlier
                frames remain.
        """
        with core_errors():
            self._journal.append(frame)

    def flush(self) -> None:
        """Blocks until every appended frame is durable.

        Raises:
            RunError: The disk is full or fails. A later call tries again.
        """
        with core_errors():
            self._journal.flush()

    def close(self) -> None:
        """Flushes and closes the journal. A second call does nothing.

        Raises:
            RunError: As ``flush``.
        """
        with core_errors():
            self._journal.close()

    @property
    def num_appended(self) -> int:
        """Number of appended frames."""
        return int(self._journal.num_appended)

    @property
    def num_durable(self) -> int:
        """Number of the earliest appended frames that survive a power cut."""
        return int(self._journal.num_durable)


@dataclass(frozen=True)
class JournalGap:
    """Consecutive bytes of a journal that belong to no complete frame.

    Attributes:
        path: Path of the journal.
        offset: File offset of the gap's first byte.
        num_bytes: Number of bytes in the gap.
        is_tail: Whether the gap is at the end of the journal. If so, a kill truncated a
            frame that was never reported durable; otherwise the file is damaged.
    """

    path: Path
    offset: int
    num_bytes: int
    is_tail: bool

    def __str__(self) -> str:
        what = "ends in a truncated frame" if self.is_tail else "is damaged"
        return (
            f"journal ({self.path}) {what} at byte {self.offset}, {self.num_bytes} "
            "bytes; all complete frames were kept"
        )


class JournalContents(NamedTuple):
    """The metadata, frames and damaged bytes of a journal."""

    meta: dict[str, Any]
    """The metadata in the journal's header."""
    frames: list[bytes]
    """All complete frames, in order."""
    gaps: list[JournalGap]
    """The bytes outside complete frames, in order of their offsets."""


def read_journal(path: Path) -> JournalContents:
    """Reads a journal without changing it.

    Returns frames after damaged bytes too, because they may be durable games. Damaged
    frames do not raise an error, because a power cut can damage frames that were never
    reported durable.

    Raises:
        UsageError: The file has an unsupported schema.
        RunError: The file is not a journal, or its header is damaged.
    """
    with core_errors():
        meta, frames, gaps = _core.read_journal(str(path))
    try:
        content = json.loads(meta)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise RunError(
            f"journal ({path}) has a header that is not a JSON object; restore it from "
            "a copy"
        )
    return JournalContents(content, frames, [JournalGap(path, *gap) for gap in gaps])
