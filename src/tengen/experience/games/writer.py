"""Writes the games of ``RUN/experience/<writer>``, a folder that one process holds.

Parts of a generation can be sealed while the rest is played. Each sealed part is a
segment in its own incarnation, so that the guarantees of ``seal`` hold for each part.
The generation has an open journal from its first game to its last, so that a restarted
writer resumes the generation.

The writer also saves games in flight, so that a restarted writer resumes them too. They
are in the archive ``<incarnation>/<generation>.unfinished``, which each save replaces
atomically.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.games.files import writer_files
from tengen.experience.games.journal import OpenSegment
from tengen.experience.games.segment import RecordedGames, recorded_games, seal
from tengen.run import WriterLock, publish_file, remove_leftovers, storage_error

_UNFINISHED = "unfinished"


def games_meta(game: str, generation: int) -> dict[str, Any]:
    """Returns the metadata for the journal of a generation of games."""
    return {"kind": "games", "game": game, "generation": generation}


class ExperienceWriter:
    """Writes journals and segments as one incarnation of a writer; holds its lock.

    Args:
        directory: ``RUN/experience/<writer>``; created if absent.
        incarnation: Greater than every earlier incarnation of this writer, at least 0.

    Raises:
        UsageError: Another process holds this writer, or the incarnation is not new.
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
        """Creates and opens the journal of a generation of games.

        Args:
            generation: Number of the generation, at least 0.
            game: The registered name of the game, such as ``gomoku/9``.

        Raises:
            RunError: The journal exists already, the disk is full, or another process
                has taken the writer's lock.
        """
        self._lock.check_held()
        path = self._folder / f"{generation:06d}.journal"
        return OpenSegment(path, games_meta(game, generation))

    def recorded_games(self, generation: int) -> RecordedGames:
        """Returns the stored games of a generation from all incarnations."""
        return recorded_games(self.directory, generation)

    def unsealed(self) -> list[int]:
        """Returns the generations that have journals, in increasing order."""
        return sorted({int(p.stem) for p in writer_files(self.directory, "journal")})

    def keep_unfinished(self, generation: int, games: Sequence[bytes]) -> None:
        """Saves the games in flight, and replaces the previous save.

        Args:
            generation: The games' generation.
            games: The games as returned by ``_core.GameQueue.unfinished``.

        Raises:
            RunError: The disk is full or fails; the previous save remains.
        """
        self._lock.check_held()
        columns: dict[str, NDArray[Any]] = {
            "num_bytes": np.array([len(game) for game in games], np.uint32),
            "bytes": np.frombuffer(b"".join(games), np.uint8),
        }
        path = self._folder / f"{generation:06d}.{_UNFINISHED}"
        publish_file(path, pack({"generation": generation}, columns))

    def unfinished_games(self, generation: int) -> list[bytes]:
        """Returns the games in flight that were saved last for ``generation``."""
        return unfinished_games(self.directory, generation)

    def move_on(self, incarnation: int) -> None:
        """Continues as another incarnation of the writer, in a new folder.

        Args:
            incarnation: Greater than every earlier incarnation of this writer.

        Raises:
            UsageError: The incarnation is not new.
            RunError: The folder cannot be written.
        """
        self._lock.check_held()
        self._folder = _new_folder(self.directory, incarnation)

    def seal(self, generation: int, *, leave: Path | None = None) -> Path | None:
        """Seals a generation whose journals are closed; see ``segment.seal``.

        Args:
            generation: The generation.
            leave: The open journal of the rest of the generation; None if the
                generation has ended.

        Raises:
            RunError: As ``segment.seal``, or another process has taken the lock.
        """
        self._lock.check_held()
        sealed = seal(self.directory, generation, leave=leave)
        if leave is None:
            for path in _unfinished_files(self.directory, generation):
                path.unlink(missing_ok=True)
        self._remove_empty()
        return sealed

    def _remove_empty(self) -> None:
        # Folders of earlier incarnations are empty if they contained only journals.
        for folder in _incarnation_folders(self.directory)[:-1]:
            with suppress(OSError):  # fails if the folder is not empty
                folder.rmdir()

    def release(self) -> None:
        """Releases the writer's lock. Idempotent."""
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


class OpenGeneration:
    """A generation in progress with its open journal. Not thread-safe.

    The self-play engine's threads may put games into ``sink`` at any time, except while
    ``seal_part`` runs.

    Args:
        writer: The writer, whose lock this process holds.
        number: The generation's number.
        game: The registered name of the game.
        segment: The generation's journal, opened by ``writer``.
        next_incarnation: Allocates a new incarnation of the writer; see
            ``ExperienceWriter``.
    """

    def __init__(
        self,
        writer: ExperienceWriter,
        number: int,
        game: str,
        segment: OpenSegment,
        next_incarnation: Callable[[], int],
    ) -> None:
        self.number = number
        self._writer = writer
        self._game = game
        self._segment = segment
        self._next_incarnation = next_incarnation
        self._num_before = 0

    @property
    def sink(self) -> _core.GameSink:
        """The sink for finished games; each call of ``seal_part`` replaces it."""
        return self._segment.sink

    @property
    def num_appended(self) -> int:
        """Number of games appended through this object."""
        return self._num_before + self._segment.num_appended

    @property
    def num_unsealed(self) -> int:
        """Number of games appended to the journal that is open now."""
        return self._segment.num_appended

    def append(self, frame: bytes) -> None:
        """Appends a game's frame to the journal; see ``OpenSegment.append``."""
        self._segment.append(frame)

    def flush(self) -> None:
        """Blocks until every appended game is durable; see ``OpenSegment.flush``."""
        self._segment.flush()

    def close(self) -> None:
        """Flushes and closes the journal; see ``OpenSegment.close``."""
        self._segment.close()

    def recorded(self) -> RecordedGames:
        """Returns the generation's stored games, from segments and journals."""
        return self._writer.recorded_games(self.number)

    def unfinished(self) -> list[bytes]:
        """Returns the games in flight that ``keep_unfinished`` saved last."""
        return self._writer.unfinished_games(self.number)

    def keep_unfinished(self, games: Sequence[bytes]) -> None:
        """Saves the games in flight, after making all finished games durable.

        Args:
            games: The games as returned by ``_core.GameQueue.unfinished``.

        Raises:
            RunError: The disk is full or fails.
        """
        self.flush()
        self._writer.keep_unfinished(self.number, games)

    def seal_part(self) -> None:
        """Seals the finished games for learners, and opens a new journal.

        A kill at any time neither loses nor duplicates a game. After an error, call
        ``seal_part`` again.

        Raises:
            RunError: The disk is full or fails; the games remain in their journals.
        """
        self._segment.close()
        num_closed = self._segment.num_appended
        # Open the new journal first: a generation without a journal counts as finished.
        self._writer.move_on(self._next_incarnation())
        self._segment = self._writer.open_games(self.number, self._game)
        self._num_before += num_closed
        self._writer.seal(self.number, leave=self._segment.path)


def unfinished_games(writer_directory: Path, generation: int) -> list[bytes]:
    """Returns a generation's games in flight that a writer saved last.

    Args:
        writer_directory: ``RUN/experience/<writer>``.
        generation: The games' generation.

    Raises:
        UsageError: The file of saved games has an unsupported schema.
        RunError: The file of saved games is damaged.
    """
    paths = _unfinished_files(writer_directory, generation)
    if not paths:
        return []
    try:
        with ArchiveReader(paths[-1]) as reader:
            sizes = reader.read("num_bytes")
            data = reader.read("bytes").tobytes()
        if sizes.dtype.kind != "u" or sizes.ndim != 1 or sizes.sum() != len(data):
            raise RunError(f"unfinished games ({paths[-1]}) are damaged")
    except RunError as error:
        raise RunError(f"{error}; or delete it, and its games start over") from error
    bounds = [0, *np.cumsum(sizes).tolist()]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


def _new_folder(directory: Path, incarnation: int) -> Path:
    """Creates an incarnation's folder; removes temporary files of earlier ones."""
    try:
        earlier = _incarnation_folders(directory)
        if earlier and incarnation <= int(earlier[-1].name):
            raise UsageError(
                f"incarnation ({incarnation}) of {directory} must be above "
                f"{earlier[-1].name}; restore RUN/events, which counts incarnations, "
                "or run the same command again"
            )
        _remove_sealed_unfinished(directory)
        for folder in earlier:
            # This process holds the writer's lock, so temporary files of any host are
            # leftovers of killed processes.
            remove_leftovers(folder, of_other_hosts=True)
            for path in folder.glob("*.journal.tmp"):
                path.unlink()
            with suppress(OSError):  # fails if the folder is not empty
                folder.rmdir()
        folder = directory / str(incarnation)
        folder.mkdir()
    except OSError as error:
        raise storage_error(directory, error) from error
    return folder


def _incarnation_folders(directory: Path) -> list[Path]:
    """Returns the folders of a writer's incarnations, in increasing order."""
    folders = [
        path for path in directory.iterdir() if path.name.isdecimal() and path.is_dir()
    ]
    return sorted(folders, key=lambda path: int(path.name))


def _remove_sealed_unfinished(writer_directory: Path) -> None:
    """Removes the files of games in flight of all sealed generations.

    A kill between sealing a generation and removing its file leaves the file behind.

    Args:
        writer_directory: ``RUN/experience/<writer>``, held by this process.
    """
    open_generations = {p.stem for p in writer_files(writer_directory, "journal")}
    sealed = {p.stem for p in writer_files(writer_directory, "npz")} - open_generations
    for path in writer_files(writer_directory, _UNFINISHED):
        if path.stem in sealed:
            path.unlink(missing_ok=True)


def _unfinished_files(writer_directory: Path, generation: int) -> list[Path]:
    files = writer_files(writer_directory, _UNFINISHED)
    return [path for path in files if int(path.stem) == generation]
