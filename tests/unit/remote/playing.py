"""Plays on mirrors, as a role would."""

from __future__ import annotations

from tengen.experience import (
    ExperienceWriter,
    Manifest,
    begin_generation,
    writer_directory,
)
from tengen.run import RunDirectory
from tests.integration.runs import wait_for
from tests.unit.experience.store_games import random_game


def play(mirror, writer, indices, seals=True):
    """Plays some games of the next generation as a role would; returns its number."""
    begun = begin_generation(mirror.run, writer, "tictactoe", mirror.next_generation)
    assert begun is not None
    generation, _, segment = begun
    for index in indices:
        segment.sink.put(random_game("tictactoe", index, generation))
    segment.close()
    if seals:
        writer.seal(generation)
    return generation


def writer_of(mirror):
    folder = writer_directory(mirror.run, mirror.place.index)
    return ExperienceWriter(folder, mirror.new_incarnation())


def claimed(mirror):
    wait_for(lambda: mirror.next_generation() is not None)


def games_at(run: RunDirectory) -> list[tuple[int, int]]:
    """Returns (generation, games) of every segment, as the learner meets them."""
    manifest = Manifest(run.experience)
    manifest.discover()
    return [(entry.generation, entry.num_games) for entry in manifest]
