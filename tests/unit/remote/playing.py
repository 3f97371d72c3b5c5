"""Plays on mirrors, as a role would, and ends them as a kill would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tengen.errors import TengenError, UsageError
from tengen.experience import (
    ExperienceWriter,
    Manifest,
    begin_generation,
    claim_writer,
    writer_directory,
)
from tengen.remote import Mirror
from tengen.run import RunDirectory, find_files
from tests.integration.runs import wait_for
from tests.refusals import refused
from tests.unit.experience.store_games import random_game

NO_PLACE = "mirror ("


@contextmanager
def writer_of(mirror: Mirror) -> Iterator[ExperienceWriter]:
    """A new writer on a mirror that has a number of a generation."""
    wait_for(lambda: mirror.next_generation() is not None)
    folder = writer_directory(mirror.run, mirror.place.index)
    with ExperienceWriter(folder, mirror.new_incarnation()) as writer:
        yield writer


def play(mirror: Mirror, games: int | Iterable[int], *, seals: bool = True) -> int:
    """Plays games of the next generation as a role would; returns its number."""
    with writer_of(mirror) as writer:
        begun = begin_generation(
            mirror.run, writer, "tictactoe", mirror.next_generation
        )
        assert begun is not None
        generation, _, segment = begun
        for index in range(games) if isinstance(games, int) else games:
            segment.sink.put(random_game("tictactoe", index, generation))
        segment.close()
        if seals:
            writer.seal(generation)
    return generation


def play_near(run: RunDirectory) -> int:
    """Plays a game of a new generation at the run's host; returns its number."""
    near = claim_writer(run, run.new_incarnation("selfplay"))
    begun = begin_generation(run, near, "tictactoe")
    assert begun is not None
    generation, _, segment = begun
    # The number of a generation without games would be free again.
    segment.sink.put(random_game("tictactoe", 0, generation))
    segment.close()
    near.seal(generation)
    near.release()
    return generation


def games_at(run: RunDirectory) -> list[tuple[int, int]]:
    """Returns (generation, games) of every segment, as the learner meets them."""
    manifest = Manifest(run.experience)
    manifest.discover()
    return [(entry.generation, entry.num_games) for entry in manifest]


def journals_of(run: RunDirectory, generation: int) -> list[Path]:
    return find_files(run.experience, f"*/*/{generation:06d}.journal")


def sent(mirror: Mirror) -> None:
    """Waits until the run's host has all games."""
    mirror.wait_until_sent(900)


def kill(mirror: Mirror) -> None:
    """Ends a mirror as if its process were killed: nothing is sent any more."""
    mirror._is_over.set()
    mirror._wake.set()
    mirror._thread.join()
    mirror._held.release()


def fails(mirror: Mirror, named: str, error: type[TengenError] = UsageError) -> None:
    """Waits until a mirror fails for good, and checks why."""

    def has_failed() -> bool:
        try:
            mirror.check()
        except TengenError:
            return True
        return False

    wait_for(has_failed)
    with refused(error, named):
        mirror.next_generation()
