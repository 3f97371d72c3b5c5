"""The run's generations: one sequence of numbers, shared by all self-play writers.

A writer is a folder ``RUN/experience/selfplay-K``, held by one process at a time. It
claims a generation by opening the journal of the next number that no writer has begun,
and plays all of its games: so no two play the same (seed, generation, index), and a
writer that is alone counts 1, 2, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tengen.errors import UsageError
from tengen.experience import ExperienceWriter, OpenSegment
from tengen.experience.games.files import SET_ASIDE
from tengen.experience.games.segment import RecordedGames
from tengen.roles.config import read_config
from tengen.roles.launch_config import MAX_WRITERS
from tengen.run import RunDirectory, find_files, lock_holder

__all__ = [
    "TRAIN_WRITER",
    "adopt_writer",
    "begin_generation",
    "claim_writer",
    "has_orphan",
    "sealed_generation",
    "writer_directory",
]

TRAIN_WRITER = 0
"""The first writer of ``tengen train``, whose self-play process I is the writer I after
it: always the same, so that it resumes its own."""


def writer_directory(run: RunDirectory, number: int) -> Path:
    """Returns the folder of self-play writer ``number``."""
    return run.experience / f"selfplay-{number}"


def claim_writer(run: RunDirectory, incarnation: int) -> ExperienceWriter:
    """Returns a writer that no process is; one with an unfinished generation first.

    Those of ``tengen train`` are left alone while it runs.

    Args:
        run: The run.
        incarnation: As ``ExperienceWriter`` takes it.

    Raises:
        UsageError: Every writer is taken.
        RunError: The disk refuses.
    """
    folders = [writer_directory(run, number) for number in _writers(run)]
    folders.sort(key=lambda folder: not find_files(folder, "*/*.journal"))
    for folder in folders:
        try:
            return ExperienceWriter(folder, incarnation)
        except UsageError:
            continue  # another process is this one
    raise UsageError(
        f"run ({run.path}) has {MAX_WRITERS} self-play processes, the most; stop one"
    )


def adopt_writer(
    run: RunDirectory, incarnation: Callable[[], int], first: int
) -> ExperienceWriter | None:
    """Returns a writer that has an unfinished generation and no process, or None.

    A run that now has fewer self-play processes than in an earlier call finishes in
    this way what those played that are gone.

    Args:
        run: The run.
        incarnation: Returns one, as ``ExperienceWriter`` takes it.
        first: The first writer that no process of ``tengen train`` is by itself.

    Raises:
        RunError: The disk refuses.
    """
    for folder in _begun(run):
        number = int(folder.name.removeprefix("selfplay-"))
        if number < first or lock_holder(folder / "lock") is not None:
            continue
        try:
            return ExperienceWriter(folder, incarnation())
        except UsageError:
            continue  # another process was faster
    return None


def has_orphan(run: RunDirectory) -> bool:
    """Whether a writer has an unfinished generation and no process."""
    writers = {writer_directory(run, number) for number in _writers(run)}
    begun = writers.intersection(_begun(run))
    return any(lock_holder(folder / "lock") is None for folder in begun)


def sealed_generation(folder: Path) -> int:
    """Returns the newest generation that a writer has sealed, 0 where there is none."""
    return _newest(
        find_files(folder, "*/*.npz") + find_files(folder, f"*/*.{SET_ASIDE}")
    )


def begin_generation(
    run: RunDirectory, writer: ExperienceWriter, task: str
) -> tuple[int, RecordedGames, OpenSegment]:
    """Goes on with the writer's unfinished generation, or claims the next number.

    Returns:
        The generation, the games that it has, and its open journal.

    Raises:
        RunError: A journal is damaged, or the disk refuses.
    """
    with run.lock("generation", wait=True):
        sealed = sealed_generation(writer.directory)
        begun = [number for number in writer.unsealed() if number > sealed]
        for number in writer.unsealed():
            if number <= sealed:
                writer.seal(number)  # a kill in the middle of it left the journals
        if begun:
            generation = begun[0]
        else:
            # In this order: others seal meanwhile, and a journal goes once its segment
            # is there.
            files = find_files(run.experience, "selfplay-*/*/*.journal")
            files += find_files(run.experience, "selfplay-*/*/*.npz")
            files += find_files(run.experience, f"selfplay-*/*/*.{SET_ASIDE}")
            generation = _newest(files) + 1
        recorded = writer.recorded_games(generation)
        return generation, recorded, writer.open_games(generation, task)


def _writers(run: RunDirectory) -> Iterable[int]:
    """Returns the writers that a role by itself may be."""
    first = TRAIN_WRITER
    if run.lock_holder("train") is not None:
        first += read_config(run).launch.of("selfplay").count
    return range(first, MAX_WRITERS)


def _begun(run: RunDirectory) -> list[Path]:
    """Returns the writers with a generation that is not sealed."""
    journals = find_files(run.experience, "selfplay-*/*/*.journal")
    return sorted({path.parent.parent for path in journals})


def _newest(files: Iterable[Path]) -> int:
    # Temporaries of killed writers, also of other hosts, may lie beside them.
    return max((int(p.stem) for p in files if p.stem.isdecimal()), default=0)
