"""A segment that somebody gave up is read by nobody, whatever lies there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen import games
from tengen.actors import SelfplayConfig
from tengen.errors import RunError
from tengen.experience import ExperienceWriter
from tengen.experience.games.files import experience_files
from tengen.experience.games.segment import recorded_games, seal
from tengen.experience.rows.derived_rows import sample_positions
from tengen.roles.selfplay.earlier_games import check_resignation, fork_sources
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.experience.store_games import random_game, write_generation

NAME = "connect4"


def forks(experience: Path) -> Any:
    return fork_sources(experience, 3)


def resignation(experience: Path) -> Any:
    run = RunDirectory(experience.parent)
    config = SelfplayConfig(resign_above=0.05)
    check = check_resignation(run, games.make(NAME), config, 3)
    assert check.num_checked > 10
    return check


def kept(experience: Path) -> Any:
    folder = experience / "selfplay-0"
    return recorded_games(folder, 2)


def positions(experience: Path) -> Any:
    sampled = [sample_positions(NAME, experience, n, 30, seed=1) for n in (1, 2)]
    return [s and (s[0].tobytes(), s[1].tobytes()) for s in sampled]


@pytest.mark.parametrize("is_beside", [False, True])
@pytest.mark.parametrize("read", [forks, resignation, kept, positions])
def test_it_is_as_if_it_had_never_been(
    tmp_path: Path, read: Callable[[Path], Any], is_beside: bool
) -> None:
    with_it, without = (tmp_path / name / "experience" for name in ("with", "without"))
    for experience in (with_it, without):
        write_generation(experience, 1, 60, name=NAME)
    path = write_generation(with_it, 2, 60, name=NAME)
    expected = read(without)
    assert read(with_it) != expected
    path.write_bytes(path.read_bytes()[:-100])
    mark = path.with_suffix(".damaged")
    if is_beside:
        mark.touch()
    else:
        path.rename(mark)
    assert read(with_it) == expected


@pytest.mark.parametrize("is_beside", [False, True])
def test_games_of_a_journal_that_a_kill_left_there_are_not_given_up(
    tmp_path: Path, is_beside: bool
) -> None:
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        segment = writer.open_games(1, NAME)
        segment.sink.put(random_game(NAME, 0, 1))
        segment.close()
        journal = segment.path.read_bytes()
        sealed = writer.seal(1)
        assert sealed is not None
    content = sealed.read_bytes()
    segment.path.write_bytes(journal)
    mark = sealed.with_suffix(".damaged")
    sealed.write_bytes(b"")
    if is_beside:
        mark.touch()
    else:
        sealed.rename(mark)
    with refused(RunError, "new incarnation"):
        seal(folder, 1)
    with ExperienceWriter(folder, 2) as writer:
        again = writer.seal(1)
    assert again == folder / "2" / sealed.name
    assert again.read_bytes() == content
    assert mark.read_bytes() == b""
    assert not segment.path.exists()
    assert recorded_games(folder, 1).indices == [0]
    assert experience_files(tmp_path, "npz") == [again]
