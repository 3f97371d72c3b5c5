"""The manifest: the learner's one order of all sealed segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.config import from_dict, to_dict
from tengen.errors import RunError
from tengen.experience.games.files import SET_ASIDE, experience_files
from tengen.experience.games.segment import SegmentReader

__all__ = ["Manifest", "SegmentEntry"]


@dataclass(frozen=True, kw_only=True)
class SegmentEntry:
    """One sealed segment of games."""

    writer: str
    """The folder of ``RUN/experience``."""

    incarnation: int
    """The folder below it."""

    generation: int
    """The number of the file."""

    num_games: int
    """Games in it."""

    num_rows: int
    """Training rows that its games give."""

    size_bytes: int
    """Of the file."""

    crc32c: int
    """Of the file's bytes."""

    def path(self, experience: Path) -> Path:
        """Returns where the file lies in ``RUN/experience``."""
        name = f"{self.generation:06d}.npz"
        return experience / self.writer / str(self.incarnation) / name

    def open(self, experience: Path) -> SegmentReader:
        """Returns a reader, once the file proved to be the one that was listed.

        Raises:
            RunError: The file is missing, damaged or another one.
        """
        reader = SegmentReader(self.path(experience))
        if (
            reader.size_bytes != self.size_bytes
            or _core.crc32c(reader.read_all()) != self.crc32c
        ):
            reader.close()
            raise RunError(
                f"segment ({reader.path}) is not the one in the manifest; "
                f"{reader.advice(reader.path)}"
            )
        return reader


class Manifest:
    """Sealed segments in the order in which the learner met them.

    It only grows, but for segments that are set aside.
    What is found at one time is appended by (generation, writer, incarnation), never by
    file time, so that a run with one look a generation has one order.

    Args:
        experience: ``RUN/experience``.
        entries: Those known so far.
    """

    def __init__(
        self, experience: Path, entries: tuple[SegmentEntry, ...] = ()
    ) -> None:
        self.experience = experience
        self._entries = list(entries)
        self._known = {_key(entry) for entry in entries}

    def __iter__(self) -> Iterator[SegmentEntry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def num_games(self) -> int:
        """Games of all segments."""
        return sum(entry.num_games for entry in self._entries)

    @property
    def num_rows(self) -> int:
        """Rows of all segments."""
        return sum(entry.num_rows for entry in self._entries)

    def discover(self) -> list[SegmentEntry]:
        """Appends the game segments that were sealed since the last call.

        Returns:
            The new entries, in their order.

        Raises:
            UsageError: One is of a newer schema.
            RunError: One is damaged.
        """
        files = self._files("npz")
        found = sorted(files.keys() - self._known)
        entries = []
        for key in found:
            with SegmentReader(files[key]) as reader:
                entries.append(_entry(key, reader))
        self.append(entries)
        return entries

    def append(self, entries: Iterable[SegmentEntry]) -> None:
        """Appends segments that another learner met."""
        new = list(entries)
        self._entries.extend(new)
        self._known.update(_key(entry) for entry in new)

    def set_aside(self) -> set[int]:
        """Takes out the segments that somebody gave up, see ``SET_ASIDE``.

        Returns:
            Their places until now.
        """
        keys = set(self._files(SET_ASIDE))
        self._known -= keys
        places = {i for i, e in enumerate(self._entries) if _key(e) in keys}
        self._entries = [e for e in self._entries if _key(e) not in keys]
        return places

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values that ``from_dict`` takes."""
        return {"segments": [to_dict(entry) for entry in self._entries]}

    def _files(self, suffix: str) -> dict[tuple[int, str, int], Path]:
        """Returns the files of segments by key."""
        return {
            (int(path.stem), path.parent.parent.name, int(path.parent.name)): path
            for path in experience_files(self.experience, suffix)
        }

    @classmethod
    def from_dict(cls, experience: Path, data: dict[str, Any]) -> Manifest:
        """Inverse of ``to_dict``; opens no file.

        Raises:
            UsageError: An entry has other fields than this release knows.
        """
        entries = (
            from_dict(SegmentEntry, entry, f"manifest.segments[{i}]")
            for i, entry in enumerate(data["segments"])
        )
        return cls(experience, tuple(entries))


def _key(entry: SegmentEntry) -> tuple[int, str, int]:
    return entry.generation, entry.writer, entry.incarnation


def _entry(key: tuple[int, str, int], reader: SegmentReader) -> SegmentEntry:
    generation, writer, incarnation = key
    data = reader.read_all()
    return SegmentEntry(
        writer=writer,
        incarnation=incarnation,
        generation=generation,
        num_games=reader.number("num_games"),
        num_rows=reader.number("num_rows"),
        size_bytes=len(data),
        crc32c=_core.crc32c(data),
    )
