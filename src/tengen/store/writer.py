"""The one process that writes ``RUN/experience/<writer>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tengen import _core
from tengen.errors import UsageError
from tengen.run.lock import WriterLock
from tengen.run.publish import remove_leftovers, storage_error
from tengen.store.core_errors import core_errors
from tengen.store.items import ItemSchema
from tengen.store.segment import recorded_games, seal

__all__ = ["ExperienceWriter", "OpenSegment"]


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
        """Flushes, and takes no more. A second call does nothing.

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
        """Frames that survive a power cut: the first so many taken."""
        return int(self._journal.num_durable)


class ExperienceWriter:
    """Writes one writer's segments, as one incarnation of it.

    Args:
        directory: ``RUN/experience/<writer>``; made when absent.
        incarnation: Greater than every earlier one of this writer, at least 0.

    Raises:
        UsageError: Another process is this writer now, or the incarnation was used.
        RunError: The folder cannot be written.
    """

    def __init__(self, directory: Path, incarnation: int) -> None:
        self.directory = directory
        self._lock = WriterLock(directory / "lock")
        try:
            earlier = _incarnations(directory)
            if earlier and incarnation <= earlier[-1]:
                raise UsageError(
                    f"incarnation ({incarnation}) of {directory} must be above "
                    f"{earlier[-1]}; count restarts"
                )
            for number in earlier:
                remove_leftovers(directory / str(number))
                for path in (directory / str(number)).glob("*.journal.tmp"):
                    path.unlink()
            self._folder = directory / str(incarnation)
            self._folder.mkdir()
        except OSError as error:
            self._lock.release()
            raise storage_error(directory, error) from error
        except BaseException:
            self._lock.release()
            raise

    def open_games(self, generation: int, game: str) -> OpenSegment:
        """Opens the journal of a generation of games.

        Args:
            generation: At least 0.
            game: The registered name, ``gomoku/9``.

        Raises:
            RunError: It was opened before, or the disk is full.
        """
        meta = {"kind": "games", "game": game, "generation": generation}
        return self._open(generation, meta)

    def open_items(self, generation: int, schema: ItemSchema) -> OpenSegment:
        """Opens a journal of items; ``generation`` numbers such journals here.

        Raises:
            RunError: It was opened before, or the disk is full.
        """
        columns = schema.to_list()
        meta = {"kind": "items", "columns": columns, "generation": generation}
        return self._open(generation, meta)

    def recorded_games(self, generation: int) -> list[int]:
        """Returns the indices of the games kept so far, of all incarnations.

        Call it before ``open_games``: it cuts torn tails, also of an open journal.
        """
        return recorded_games(self.directory, generation)

    def unsealed(self) -> list[int]:
        """Returns the generations that have journals, in increasing order."""
        return sorted({int(path.stem) for path in self.directory.glob("*/*.journal")})

    def seal(self, generation: int) -> Path | None:
        """Seals a generation whose journal is closed; see ``segment.seal``."""
        return seal(self.directory, generation)

    def release(self) -> None:
        """Lets the next writer in. A second call does nothing."""
        self._lock.release()

    def __enter__(self) -> ExperienceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _open(self, generation: int, meta: Mapping[str, Any]) -> OpenSegment:
        return OpenSegment(self._folder / f"{generation:06d}.journal", meta)


def _incarnations(directory: Path) -> list[int]:
    names = (path.name for path in directory.iterdir() if path.is_dir())
    return sorted(int(name) for name in names if name.isdecimal())
