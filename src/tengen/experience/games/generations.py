"""The run's generations: one sequence of numbers, shared by all self-play writers.

A writer is a folder ``RUN/experience/selfplay-K``, held by one process at a time. It
claims a generation by opening a journal with the next number that no writer has begun,
and plays all games of the generation. So no two writers play the same (seed,
generation, index), and a single writer counts 1, 2, 3. For a writer whose process is on
a host without the run directory (``tengen.remote``), the run's service claims numbers
ahead.
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

__all__ = [
    "MAX_WRITERS",
    "TRAIN_WRITER",
    "adopt_writer",
    "begin_generation",
    "claim_ahead",
    "claim_writer",
    "give_up_numbers",
    "has_orphan",
    "num_trained",
    "sealed_generation",
    "writer_directory",
]

TRAIN_WRITER = 0
"""The first writer of ``tengen train``. Its self-play process I always has the number
``TRAIN_WRITER + I``, so that it resumes its own generation."""

_GIVEN_UP = "given_up"

MAX_WRITERS = 1024
"""The most self-play processes of a run, which is the most processes of a role."""


def writer_directory(run: RunDirectory, number: int) -> Path:
    """Returns the folder of self-play writer ``number``."""
    return run.experience / f"selfplay-{number}"


def claim_writer(run: RunDirectory, incarnation: int) -> ExperienceWriter:
    """Returns a free writer; first one that has an unfinished generation.

    The writers of ``tengen train`` are not taken while it runs.

    Args:
        run: The run.
        incarnation: As ``ExperienceWriter`` takes it.

    Raises:
        UsageError: Every writer is taken.
        RunError: The disk refuses.
    """
    folders = [writer_directory(run, number) for number in _writers(run)]
    begun = set(_begun(run))
    folders.sort(key=lambda folder: folder not in begun)
    for folder in folders:
        # Checked first, because taking a lock that is held waits for a while.
        if lock_holder(folder / "lock") is not None:
            continue
        try:
            return ExperienceWriter(folder, incarnation)
        except UsageError:
            continue  # another process has taken this writer
    raise UsageError(
        f"run ({run.path}) has {MAX_WRITERS} self-play processes, the most; stop one"
    )


def adopt_writer(
    run: RunDirectory, incarnation: Callable[[], int], first: int
) -> ExperienceWriter | None:
    """Returns a writer that has an unfinished generation but no process, or None.

    A run with fewer self-play processes than in an earlier call finishes the
    generations of the missing processes in this way.

    Args:
        run: The run.
        incarnation: Returns an incarnation for ``ExperienceWriter``.
        first: The first writer that belongs to no process of ``tengen train``.

    Raises:
        RunError: The disk refuses.
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
            continue  # another process was faster
    return None


def has_orphan(run: RunDirectory) -> bool:
    """Whether some writer has an unfinished generation but no process."""
    writers = {writer_directory(run, number) for number in _writers(run)}
    begun = writers.intersection(_begun(run))
    return any(lock_holder(folder / "lock") is None for folder in begun)


def sealed_generation(folder: Path) -> int:
    """Returns the newest generation that a writer has sealed, 0 where there is none.

    A generation with a journal is not sealed: only parts of it are sealed, or a kill
    left the journal.
    """
    # In this order, because a journal is removed once its segment is there.
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
    """Goes on with the writer's unfinished generation, or claims the next number.

    Args:
        run: The run.
        writer: The writer, held by this process.
        task: The run's.
        claimed: Returns a number that was claimed for this writer elsewhere and that
            it has not begun, or None; without this, the writer claims a number here.

    Returns:
        The generation, the games that it has, and its open journal; None where no
        number is claimed.

    Raises:
        RunError: A journal is damaged, or the disk refuses.
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
        incarnation: The incarnation of the writer's process, which has a folder.
        task: The run's task.
        num_wanted: How many unsealed generations the writer should have, at least 0.

    Returns:
        All unsealed generations, in increasing order, perhaps more than were wanted.

    Raises:
        RunError: The disk refuses.
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
    """Makes sure that no number up to ``newest`` is ever claimed again.

    For a process on another host that has lost its place, and may have played some.

    Raises:
        RunError: The disk refuses, or the file is damaged.
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
            f"given_up ({path}) must hold the number of a generation; write the newest "
            f"one that is in {run.experience} there"
        )
    return int(text)


def _writers(run: RunDirectory) -> Iterable[int]:
    """Returns the writers that a role which runs by itself may take.

    Writers whose process is on a host without the run directory are left out, because
    that process may only be cut off for a while.
    """
    first = TRAIN_WRITER
    if run.lock_holder("train") is not None:
        first += num_trained(run)
    mirrored = _mirrored(run)
    return [number for number in range(first, MAX_WRITERS) if number not in mirrored]


def num_trained(run: RunDirectory) -> int:
    """Returns how many writers ``tengen train`` has: one for each self-play process."""
    # Read as a dictionary, because the config's classes are in a higher layer.
    roles = run.read_run()["config"].get("launch", {}).get("roles", {})
    count = roles.get("selfplay", {}).get("count", 1)
    return count if type(count) is int else 1


def _mirrored(run: RunDirectory) -> set[int]:
    """Returns the writers whose process is on a host without the run directory."""
    return {one.index for one in read_mirrors(run) if one.role == "selfplay"}


def _begun(run: RunDirectory) -> list[Path]:
    """Returns the writers with a generation that is not sealed."""
    journals = find_files(run.experience, "selfplay-*/*/*.journal")
    return sorted({path.parent.parent for path in journals})


def _newest_of(run: RunDirectory) -> int:
    """Returns the newest generation that any writer has begun, 0 where none has."""
    # In this order, because others seal meanwhile, and a journal is removed once its
    # segment is there.
    files = find_files(run.experience, "selfplay-*/*/*.journal")
    files += find_files(run.experience, "selfplay-*/*/*.npz")
    files += find_files(run.experience, f"selfplay-*/*/*.{SET_ASIDE}")
    return max(_newest(files), _newest_given_up(run))


def _newest(files: Iterable[Path]) -> int:
    # Temporary files of killed writers, also on other hosts, may be beside them.
    return max((int(p.stem) for p in files if p.stem.isdecimal()), default=0)
