"""The writer of ``RUN/experience/<writer>``, which only one process has at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tengen.errors import UsageError
from tengen.experience.games.files import writer_files
from tengen.experience.games.journal import OpenSegment
from tengen.experience.games.segment import RecordedGames, recorded_games, seal
from tengen.experience.games.unfinished import (
    keep_unfinished,
    remove_sealed_unfinished,
    remove_unfinished,
    unfinished_games,
)
from tengen.run.lock import WriterLock
from tengen.run.publish import remove_leftovers, storage_error

__all__ = ["ExperienceWriter", "games_meta"]


def games_meta(game: str, generation: int) -> dict[str, Any]:
    """Returns the metadata of a generation's journal."""
    return {"kind": "games", "game": game, "generation": generation}


class ExperienceWriter:
    """Writes the segments of one writer, as one of its incarnations.

    Args:
        directory: ``RUN/experience/<writer>``; made when absent.
        incarnation: Greater than every earlier one of this writer, at least 0.

    Raises:
        UsageError: Another process has this writer, or the incarnation was used.
        RunError: The folder cannot be written.
    """

    def __init__(self, directory: Path, incarnation: int) -> None:
        self.directory = directory
        self._lock = WriterLock(directory / "lock", directory)
        try:
            self._folder = _new_folder(directory, incarnation)
        except BaseException:
            self._lock.release()
            raise

    def open_games(self, generation: int, game: str) -> OpenSegment:
        """Opens the journal of a generation of games.

        Args:
            generation: At least 0.
            game: The registered name, ``gomoku/9``.

        Raises:
            RunError: The journal was opened before, the disk is full, or another
                process writes here too.
        """
        self._lock.check_held()
        path = self._folder / f"{generation:06d}.journal"
        return OpenSegment(path, games_meta(game, generation))

    def recorded_games(self, generation: int) -> RecordedGames:
        """Returns the games kept so far, of all incarnations."""
        return recorded_games(self.directory, generation)

    def unsealed(self) -> list[int]:
        """Returns the generations that have journals, in increasing order."""
        return sorted({int(p.stem) for p in writer_files(self.directory, "journal")})

    def keep_unfinished(self, generation: int, games: Sequence[bytes]) -> None:
        """Publishes the games in flight; see ``unfinished.keep_unfinished``."""
        self._lock.check_held()
        keep_unfinished(self._folder, generation, games)

    def unfinished_games(self, generation: int) -> list[bytes]:
        """Returns the last games in flight that any incarnation kept."""
        return unfinished_games(self.directory, generation)

    def move_on(self, incarnation: int) -> None:
        """Writes as another incarnation from now on.

        Args:
            incarnation: Greater than every earlier one of this writer.

        Raises:
            UsageError: The incarnation was used.
            RunError: The folder cannot be written.
        """
        self._lock.check_held()
        self._folder = _new_folder(self.directory, incarnation)

    def seal(self, generation: int) -> Path | None:
        """Seals a generation whose journal is closed; see ``segment.seal``.

        Raises:
            RunError: As ``segment.seal``, or another process writes here too.
        """
        self._lock.check_held()
        sealed = seal(self.directory, generation)
        remove_unfinished(self.directory, generation)
        self._remove_empty()
        return sealed

    def seal_before(self, generation: int, journal: Path) -> Path | None:
        """Seals the part of a generation that is in earlier journals.

        Args:
            generation: The generation.
            journal: The open journal, which is left as it is.

        Raises:
            RunError: As ``seal``.
        """
        self._lock.check_held()
        sealed = seal(self.directory, generation, leave=journal)
        self._remove_empty()
        return sealed

    def _remove_empty(self) -> None:
        # The journals of earlier incarnations were all that their folders held.
        for folder in _incarnation_folders(self.directory)[:-1]:
            with suppress(OSError):  # fails where the folder is not empty
                folder.rmdir()

    def release(self) -> None:
        """Lets another process have the writer. A second call does nothing."""
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


def _new_folder(directory: Path, incarnation: int) -> Path:
    """Makes the folder of an incarnation, and clears up after the earlier ones."""
    try:
        earlier = _incarnation_folders(directory)
        if earlier and incarnation <= int(earlier[-1].name):
            raise UsageError(
                f"incarnation ({incarnation}) of {directory} must be above "
                f"{earlier[-1].name}; restore RUN/events, which counts them, or run "
                f"the same command again"
            )
        remove_sealed_unfinished(directory)
        for folder in earlier:
            # No process writes here now, on any host: all hold the lock while they do.
            remove_leftovers(folder, of_other_hosts=True)
            for path in folder.glob("*.journal.tmp"):
                path.unlink()
            with suppress(OSError):  # it holds something
                folder.rmdir()
        folder = directory / str(incarnation)
        folder.mkdir()
    except OSError as error:
        raise storage_error(directory, error) from error
    return folder


def _incarnation_folders(directory: Path) -> list[Path]:
    """Returns the folders of a writer's incarnations, the newest last."""
    folders = [
        path for path in directory.iterdir() if path.name.isdecimal() and path.is_dir()
    ]
    return sorted(folders, key=lambda path: int(path.name))
