"""Journals: open segments, durable frame by frame, and how they are read again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tengen import _core
from tengen.errors import DiskFullError, RunError, UsageError

__all__ = [
    "JournalContents",
    "JournalGap",
    "OpenSegment",
    "core_errors",
    "read_journal",
]


@contextmanager
def core_errors() -> Iterator[None]:
    """Raises the core's errors as UsageError (another schema) or RunError.

    A full disk raises DiskFullError.
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
    """A journal being written. Threads may share it.

    Attributes:
        sink: Takes finished games from the self-play engine (``_core.GameSink``).
        path: The journal.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any]) -> None:
        self.path = path
        with core_errors():
            self._journal = _core.Journal(str(path), json.dumps(meta, sort_keys=True))
            self.sink = _core.JournalSink(self._journal)

    def append(self, frame: bytes) -> None:
        """Takes one frame. Blocks only while 64 MiB wait for the disk.

        Raises:
            RunError: The disk is full or fails; the frame is not taken, those taken
                before are kept.
        """
        with core_errors():
            self._journal.append(frame)

    def flush(self) -> None:
        """Blocks until every frame taken is durable.

        Raises:
            RunError: The disk is full or fails. A later call tries again.
        """
        with core_errors():
            self._journal.flush()

    def close(self) -> None:
        """Flushes, and takes no more frames. A second call does nothing.

        Raises:
            RunError: As ``flush``.
        """
        with core_errors():
            self._journal.close()

    @property
    def num_appended(self) -> int:
        """Frames taken."""
        return int(self._journal.num_appended)

    @property
    def num_durable(self) -> int:
        """How many of the first frames taken survive a power cut."""
        return int(self._journal.num_durable)


@dataclass(frozen=True)
class JournalGap:
    """Bytes of a journal that are no whole frame.

    Attributes:
        path: The journal.
        offset: Where the bytes begin.
        num_bytes: How many bytes there are.
        is_tail: Whether nothing follows. Then a kill cut off a frame that was never
            reported durable. Otherwise whole frames follow, and the file was damaged.
    """

    path: Path
    offset: int
    num_bytes: int
    is_tail: bool

    def __str__(self) -> str:
        what = "ends in a frame cut short" if self.is_tail else "is damaged"
        return (
            f"journal ({self.path}) {what} at byte {self.offset}, {self.num_bytes} "
            f"bytes; every whole frame was kept"
        )


class JournalContents(NamedTuple):
    """The contents of a journal."""

    meta: dict[str, Any]
    """The metadata that it was opened with."""
    frames: list[bytes]
    """Every whole frame, in order."""
    gaps: list[JournalGap]
    """The bytes that are no whole frame, in order of their offsets."""


def read_journal(path: Path) -> JournalContents:
    """Reads a journal and changes nothing.

    Frames before and after a damaged place are returned. Leaving out those after it
    would lose durable games, and refusing the file would stop runs because of bytes
    that a power cut may leave in frames that were never reported durable.

    Raises:
        UsageError: The file is of another schema.
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
            f"journal ({path}) has a header that is no JSON object; "
            f"restore it from a copy"
        )
    return JournalContents(content, frames, [JournalGap(path, *gap) for gap in gaps])
