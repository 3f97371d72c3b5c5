"""The manifest: the learner's ordered list of all sealed segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.experience.games.files import SET_ASIDE, experience_files
from tengen.experience.games.segment import SegmentReader


@dataclass(frozen=True, kw_only=True)
class SegmentEntry:
    """The manifest's entry for one sealed segment of games."""

    writer: str
    """Name of the writer's folder in ``RUN/experience``."""

    incarnation: int
    """The writer's incarnation, also the name of a folder in the writer's folder."""

    generation: int
    """The games' generation, which is the segment's file name."""

    num_games: int
    """Number of games in the segment."""

    num_rows: int
    """Number of training rows in the segment."""

    size_bytes: int
    """Size of the segment's file in bytes."""

    crc32c: int
    """CRC-32C of the segment's complete file."""

    def path(self, experience: Path) -> Path:
        """Returns the path of the segment's file, given that of ``RUN/experience``."""
        name = f"{self.generation:06d}.npz"
        return experience / self.writer / str(self.incarnation) / name

    def open(self, experience: Path) -> SegmentReader:
        """Returns a reader of the segment, after checking its size and checksum.

        Raises:
            RunError: The file is missing or damaged, or differs from this entry.
        """
        reader = SegmentReader(self.path(experience))
        if (
            reader.size_bytes != self.size_bytes
            or _core.crc32c(reader.read_all()) != self.crc32c
        ):
            reader.close()
            raise RunError(
                f"segment ({reader.path}) differs from the one in the manifest; "
                f"{reader.advice(reader.path)}"
            )
        return reader


class Manifest:
    """Sealed segments in the order in which the learner found them.

    Segments are only appended, except that ``set_aside`` removes excluded ones. The new
    segments of one ``discover`` are sorted by (generation, writer, incarnation), never
    by file time. So the order is reproducible if ``discover`` runs once per generation.

    Args:
        experience: ``RUN/experience``.
        entries: The segments found so far.
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
        """Number of games in all segments of the manifest."""
        return sum(entry.num_games for entry in self._entries)

    @property
    def num_rows(self) -> int:
        """Number of training rows in all segments of the manifest."""
        return sum(entry.num_rows for entry in self._entries)

    def discover(self) -> list[SegmentEntry]:
        """Appends the segments that were sealed since the last call.

        Returns:
            The new entries, in the manifest's order.

        Raises:
            UsageError: A segment is of a newer schema.
            RunError: A segment is damaged.
        """
        files = self._files("npz")
        found = sorted(files.keys() - self._known)
        entries = []
        for key in found:
            with SegmentReader(files[key]) as reader:
                entries.append(_entry(key, reader))
        self.append(entries)
        return entries

    @contextmanager
    def opened(self, entry: SegmentEntry, game: str) -> Iterator[SegmentReader]:
        """Yields a reader of a segment in this manifest.

        Args:
            entry: The segment.
            game: The name of the game that the segment must contain.

        Raises:
            UsageError: The segment has a newer schema or is of a different game.
            RunError: The segment is damaged, or the caller's block raised RunError.
        """
        with entry.open(self.experience) as reader:
            if reader.meta["game"] != game:
                raise UsageError(
                    f"segment ({reader.path}) must be for {game}, not "
                    f"{reader.meta['game']}; choose another --out"
                )
            try:
                yield reader
            except RunError as error:
                raise RunError(
                    f"segment ({reader.path}) is rejected: {error}"
                ) from error

    def append(self, entries: Iterable[SegmentEntry]) -> None:
        """Appends segments that another learner has discovered."""
        new = list(entries)
        self._entries.extend(new)
        self._known.update(_key(entry) for entry in new)

    def set_aside(self) -> set[int]:
        """Removes the segments that the user has excluded; see ``SET_ASIDE``.

        Returns:
            The indices that the removed segments had before.
        """
        keys = set(self._files(SET_ASIDE))
        self._known -= keys
        places = {i for i, e in enumerate(self._entries) if _key(e) in keys}
        self._entries = [e for e in self._entries if _key(e) not in keys]
        return places

    def to_dict(self) -> dict[str, Any]:
        """Returns the manifest as JSON values for ``from_dict``."""
        return {"segments": [to_dict(entry) for entry in self._entries]}

    def _files(self, suffix: str) -> dict[tuple[int, str, int], Path]:
        """Returns all writers' files with ``suffix``, by key; see ``_key``."""
        return {
            (int(path.stem), path.parent.parent.name, int(path.parent.name)): path
            for path in experience_files(self.experience, suffix)
        }

    @classmethod
    def from_dict(cls, experience: Path, data: dict[str, Any]) -> Manifest:
        """Creates a manifest from the result of ``to_dict``, without opening any file.

        Raises:
            UsageError: An entry has fields that this release does not know.
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
