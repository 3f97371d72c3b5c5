"""Allocates generation numbers to the self-play writers of a run.

All writers share one sequence of numbers. A writer is a folder
``RUN/experience/selfplay-K``, held by one process at a time. It claims a generation by
opening a journal with the next unused number, and plays all games of the generation. So
no two writers play the same (seed, generation, index). For a process on a host without
the run directory (``tengen.remote``), the run's service claims numbers in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tengen.errors import RunError, UsageError
from tengen.experience.games.files import SET_ASIDE, writer_files
from tengen.experience.games.journal import OpenSegment
from tengen.experience.games.segment import RecordedGames
from tengen.experience.games.writer import ExperienceWriter, games_meta
from tengen.run import (
    RunDirectory,
    find_files,
    lock_holder,
    publish_file,
    read_mirrors,
    storage_error,
)

TRAIN_WRITER = 0
"""Number of the first self-play writer of ``tengen train``. Process I always has writer
``TRAIN_WRITER + I``, so that a restarted process resumes its own generation."""

_GIVEN_UP = "given_up"

MAX_WRITERS = 1024
"""Maximum number of self-play writers of a run, one per process."""


def writer_directory(run: RunDirectory, number: int) -> Path:
    """Returns the folder of self-play writer ``number``."""
    return run.experience / f"selfplay-{number}"


def claim_writer(run: RunDirectory, incarnation: int) -> ExperienceWriter:
    """Acquires a free writer, preferably one that has an unfinished generation.

    While ``tengen train`` runs, the writers of its processes are not available.

    Args:
        run: The run.
        incarnation: The incarnation for ``ExperienceWriter``.

    Raises:
        UsageError: No writer is free.
        RunError: The disk is full or fails.
    """
    folders = [writer_directory(run, number) for number in _writers(run)]
    begun = set(_begun(run))
    folders.sort(key=lambda folder: folder not in begun)
    for folder in folders:
        # Skip held locks, because an attempt to acquire a held lock blocks for a while.
        if lock_holder(folder / "lock") is not None:
            continue
        try:
            return ExperienceWriter(folder, incarnation)
        except UsageError:
            continue  # another process has acquired this writer
    raise UsageError(
        f"run ({run.path}) has the maximum, {MAX_WRITERS} self-play processes; stop one"
    )


def adopt_writer(
    run: RunDirectory, incarnation: Callable[[], int], first: int
) -> ExperienceWriter | None:
    """Acquires a writer with an unfinished generation and no process, or returns None.

    If a run has fewer self-play processes than before, the remaining processes finish
    the generations of the missing processes in this way.

    Args:
        run: The run.
        incarnation: Allocates an incarnation for ``ExperienceWriter``.
        first: Number of the first writer that no process of ``tengen train`` owns.

    Raises:
        RunError: The disk is full or fails.
    """
    mirrored = _mirrored(run)
    for folder in _begun(run):
        number = int(folder.name.removeprefix("selfplay-"))
        is_held = number in mirrored or lock_holder(folder / "lock") is not None
        if number < first or is_held:
            continue
        try:
            return ExperienceWriter(folder, incarnation())
        except UsageError:
            continue  # another process has acquired this writer
    return None


def has_orphan(run: RunDirectory) -> bool:
    """Returns whether any writer has an unfinished generation but no process."""
    writers = {writer_directory(run, number) for number in _writers(run)}
    begun = writers.intersection(_begun(run))
    return any(lock_holder(folder / "lock") is None for folder in begun)


def sealed_generation(folder: Path) -> int:
    """Returns the newest generation that a writer has sealed completely; 0 for none.

    A generation with a journal does not count, because parts of it may be unsealed.
    """
    # List journals first: sealing adds a segment before it removes the journal, so that
    # every generation is in at least one list.
    journals = find_files(folder, "*/*.journal")
    files = find_files(folder, "*/*.npz") + find_files(folder, f"*/*.{SET_ASIDE}")
    unsealed = {path.stem for path in journals}
    return _newest(path for path in files if path.stem not in unsealed)


def begin_generation(
    run: RunDirectory,
    writer: ExperienceWriter,
    task: str,
    claimed: Callable[[], int | None] | None = None,
) -> tuple[int, RecordedGames, OpenSegment] | None:
    """Resumes the writer's unfinished generation, or claims the next number.

    Args:
        run: The run.
        writer: The writer, held by this process.
        task: The run's task.
        claimed: Returns an unused number that the run's service has claimed for this
            writer, or None. If ``claimed`` is None, this function claims a number.

    Returns:
        The generation's number, its stored games, and its open journal; None if
        ``claimed`` returns None.

    Raises:
        RunError: A journal is damaged, or the disk is full or fails.
    """
    with run.lock("generation", wait=True):
        begun = writer.unsealed()
        generation = begun[0] if begun else None
        if generation is None:
            generation = _newest_of(run) + 1 if claimed is None else claimed()
        if generation is None:
            return None
        recorded = writer.recorded_games(generation)
        return generation, recorded, writer.open_games(generation, task)


def claim_ahead(
    run: RunDirectory, folder: Path, incarnation: int, task: str, num_wanted: int
) -> list[int]:
    """Claims generations for a writer whose process is on another host.

    Args:
        run: The run.
        folder: The writer's folder, whose lock the caller holds.
        incarnation: The current incarnation of the writer, whose folder must exist.
        task: The run's task.
        num_wanted: Minimum number of unsealed generations of the writer, at least 0.

    Returns:
        All unsealed generations of the writer, in increasing order; possibly more than
        ``num_wanted``.

    Raises:
        RunError: The disk is full or fails.
    """
    with run.lock("generation", wait=True):
        sealed = {int(p.stem) for p in writer_files(folder, "npz")}
        sealed |= {int(p.stem) for p in writer_files(folder, SET_ASIDE)}
        begun = {int(p.stem) for p in writer_files(folder, "journal")} - sealed
        number = _newest_of(run)
        while len(begun) < num_wanted:
            number += 1
            path = folder / str(incarnation) / f"{number:06d}.journal"
            OpenSegment(path, games_meta(task, number)).close()
            begun.add(number)
    return sorted(begun)


def give_up_numbers(run: RunDirectory, newest: int) -> None:
    """Ensures that no generation number up to ``newest`` is ever claimed again.

    Called if a process on another host has lost its writer: the process may have played
    games of these generations, and a second process must not play them again.

    Raises:
        RunError: The disk is full or fails, or the file is damaged.
    """
    with run.lock("generation", wait=True):
        if newest > _newest_given_up(run):
            publish_file(run.experience / _GIVEN_UP, f"{newest}\n".encode())


def _newest_given_up(run: RunDirectory) -> int:
    path = run.experience / _GIVEN_UP
    try:
        text = path.read_text("ascii", "replace")
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise storage_error(path, error) from error
    if not text.strip().isdecimal():
        raise RunError(
            f"given_up ({path}) must contain the number of a generation; write the "
            f"newest one in {run.experience} to it"
        )
    return int(text)


def _writers(run: RunDirectory) -> Iterable[int]:
    """Returns the numbers of the writers that a standalone process can acquire.

    Skips writers whose process is on a host without the run directory, because the
    process may be disconnected only temporarily.
    """
    first = TRAIN_WRITER
    if run.lock_holder("train") is not None:
        first += num_trained(run)
    mirrored = _mirrored(run)
    return [number for number in range(first, MAX_WRITERS) if number not in mirrored]


def num_trained(run: RunDirectory) -> int:
    """Returns the config's number of self-play processes for ``tengen train``."""
    # Read the config as a dictionary, because this layer must not import its classes.
    roles = run.read_run()["config"].get("launch", {}).get("roles", {})
    count = roles.get("selfplay", {}).get("count", 1)
    return count if type(count) is int else 1


def _mirrored(run: RunDirectory) -> set[int]:
    """Returns the numbers of writers on hosts without the run directory."""
    return {one.index for one in read_mirrors(run) if one.role == "selfplay"}


def _begun(run: RunDirectory) -> list[Path]:
    """Returns the folders of writers that have an unfinished generation."""
    journals = find_files(run.experience, "selfplay-*/*/*.journal")
    return sorted({path.parent.parent for path in journals})


def _newest_of(run: RunDirectory) -> int:
    """Returns the newest generation number in use or given up in a run, or 0."""
    # List journals first: a process that seals publishes a segment before it removes
    # the journal, so that every generation is in at least one list.
    files = find_files(run.experience, "selfplay-*/*/*.journal")
    files += find_files(run.experience, "selfplay-*/*/*.npz")
    files += find_files(run.experience, f"selfplay-*/*/*.{SET_ASIDE}")
    return max(_newest(files), _newest_given_up(run))


def _newest(files: Iterable[Path]) -> int:
    # Skip temporary files of killed writers, whose names are not numbers.
    return max((int(p.stem) for p in files if p.stem.isdecimal()), default=0)
