"""The writer of ``RUN/experience/<writer>``, which only one process has at a time.

Parts of a generation may be sealed while the rest is played. Each sealed part is a
segment of its own incarnation, so that the guarantees of ``seal`` hold for it. The
generation has an open journal from the first game to the last, by which a restart knows
that the generation is not over.

Games in flight are kept, so that a restart goes on with them. Each generation has one
file, ``<incarnation>/<generation>.unfinished``, an archive that is published as a whole
and replaced by the next one.
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

__all__ = ["ExperienceWriter", "OpenGeneration", "games_meta", "unfinished_games"]

_UNFINISHED = "unfinished"


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
        """Publishes the games in flight, in place of those kept before.

        Args:
            generation: The games' generation.
            games: Each as ``_core.GameQueue.unfinished`` gives it.

        Raises:
            RunError: The disk refuses; the games kept before stay.
        """
        self._lock.check_held()
        columns: dict[str, NDArray[Any]] = {
            "num_bytes": np.array([len(game) for game in games], np.uint32),
            "bytes": np.frombuffer(b"".join(games), np.uint8),
        }
        path = self._folder / f"{generation:06d}.{_UNFINISHED}"
        publish_file(path, pack({"generation": generation}, columns))

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

    def seal(self, generation: int, *, leave: Path | None = None) -> Path | None:
        """Seals a generation whose journals are closed; see ``segment.seal``.

        Args:
            generation: The generation.
            leave: The open journal of the rest of the generation; None: it is over.

        Raises:
            RunError: As ``segment.seal``, or another process writes here too.
        """
        self._lock.check_held()
        sealed = seal(self.directory, generation, leave=leave)
        if leave is None:
            for path in _unfinished_files(self.directory, generation):
                path.unlink(missing_ok=True)
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


class OpenGeneration:
    """A writer's generation and its open journal. Not thread-safe.

    The self-play engine's threads put games into ``sink`` meanwhile, except while
    ``seal_part`` runs.

    Args:
        writer: The writer, held by this process.
        number: The generation's number.
        game: The registered name of the game.
        segment: The generation's journal, opened by the writer.
        next_incarnation: Returns a new incarnation of the writer; see
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
        """The sink of finished games; there is a new one after each sealed part."""
        return self._segment.sink

    @property
    def num_appended(self) -> int:
        """Games taken since the generation was opened."""
        return self._num_before + self._segment.num_appended

    @property
    def num_unsealed(self) -> int:
        """Games taken since the generation was opened or a part was last sealed."""
        return self._segment.num_appended

    def append(self, frame: bytes) -> None:
        """Takes a game; see ``OpenSegment.append``."""
        self._segment.append(frame)

    def flush(self) -> None:
        """Blocks until every game taken is durable; see ``OpenSegment.flush``."""
        self._segment.flush()

    def close(self) -> None:
        """Flushes, and takes no more; see ``OpenSegment.close``."""
        self._segment.close()

    def recorded(self) -> RecordedGames:
        """Returns the games that are stored, in sealed parts and in journals."""
        return self._writer.recorded_games(self.number)

    def unfinished(self) -> list[bytes]:
        """Returns the games in flight that were last kept."""
        return self._writer.unfinished_games(self.number)

    def keep_unfinished(self, games: Sequence[bytes]) -> None:
        """Publishes the games in flight, once what was finished is durable.

        Args:
            games: Each as ``_core.GameQueue.unfinished`` gives it.

        Raises:
            RunError: The disk refuses.
        """
        self.flush()
        self._writer.keep_unfinished(self.number, games)

    def seal_part(self) -> None:
        """Seals the finished games for learners, and goes on in a new journal.

        A kill at any instant neither loses nor doubles a game. After an error it may be
        called again.

        Raises:
            RunError: The disk refuses; the games stay in their journals.
        """
        self._segment.close()
        num_closed = self._segment.num_appended
        # Opened before the part is sealed: without a journal the generation is over.
        self._writer.move_on(self._next_incarnation())
        self._segment = self._writer.open_games(self.number, self._game)
        self._num_before += num_closed
        self._writer.seal(self.number, leave=self._segment.path)


def unfinished_games(writer_directory: Path, generation: int) -> list[bytes]:
    """Returns the games in flight that a writer's last incarnation kept.

    Args:
        writer_directory: ``RUN/experience/<writer>``.
        generation: The games' generation.

    Raises:
        UsageError: The file is of another schema.
        RunError: The file is damaged.
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
        raise RunError(
            f"{error}; without it the games in flight begin again: delete it"
        ) from error
    bounds = [0, *np.cumsum(sizes).tolist()]
    return [data[start:end] for start, end in itertools.pairwise(bounds)]


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
        _remove_sealed_unfinished(directory)
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


def _remove_sealed_unfinished(writer_directory: Path) -> None:
    """Removes the files of all sealed generations.

    A kill after the seal and before the removal leaves such a file.

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
