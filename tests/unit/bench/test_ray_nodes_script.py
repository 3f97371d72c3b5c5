"""The script that loses a host of a Ray cluster: what it finds missing afterwards."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from tengen.experience import ExperienceWriter
from tengen.run import RunDirectory
from tengen.run.actor_counts import write_actor_totals
from tests.unit.experience.store_games import random_game, write_generation

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "faults"
GAMES = 4


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("ray_nodes")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Two generations that are sealed, and two games of the next."""
    run = RunDirectory(tmp_path / "run")
    for generation in (1, 2):
        write_generation(run.experience, generation, GAMES)
    journal(run, 3, 0, 3)
    return run


def journal(run: RunDirectory, generation: int, *indices: int) -> None:
    writer = run.experience / "selfplay-0"
    with ExperienceWriter(writer, len(list(writer.iterdir())) + 1) as experience_writer:
        segment = experience_writer.open_games(generation, "tictactoe")
        for index in indices:
            segment.sink.put(random_game("tictactoe", index, generation))
        segment.close()


def test_games_that_are_all_there_once_miss_nothing(
    script: Any, run: RunDirectory
) -> None:
    before = script.games(run)
    assert len(before) == 2 * GAMES + 2
    journal(run, 3, 1)
    counts, missed = script.of_games(run, GAMES, before)
    assert (counts, missed) == ({"games": 11, "generations": 2}, [])


def test_a_game_is_the_same_in_a_journal_and_in_its_segment(
    script: Any, run: RunDirectory
) -> None:
    before = script.games(run)
    journal(run, 3, 1, 2)
    with ExperienceWriter(run.experience / "selfplay-0", 9) as writer:
        writer.seal(3)
    counts, missed = script.of_games(run, GAMES, before)
    assert (counts, missed) == ({"games": 12, "generations": 3}, [])


def test_games_that_are_lost_doubled_or_changed_are_told(
    script: Any, run: RunDirectory
) -> None:
    before = script.games(run)
    journal(run, 2, 1)
    (line,) = script.of_games(run, GAMES, before)[1]
    assert line == "game (2, 1) is there twice"
    changed = {**before, (1, 0): "other"}
    assert (
        script.of_games(run, GAMES, changed)[1]
        == [
            "games that were durable are lost or changed, [(1, 0)]",
            line,
        ][::-1]
    )
    shutil.rmtree(run.experience)
    for generation in (1, 3):
        write_generation(run.experience, generation, GAMES - 1)
    missed = script.of_games(run, GAMES, {})[1]
    assert missed == [
        "generation 1 has not the games 0 to 3",
        "generation 3 has not the games 0 to 3",
        "generations are not one after the other, [1, 3]",
    ]


def test_frames_are_the_budget_and_no_actor_counts_fewer_than_before(
    script: Any, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path)
    for index, num_frames in ((0, 600), (1, 450)):
        write_actor_totals(run, index, (num_frames, 3))
    before = script.frames(run)
    counts, missed = script.of_frames(run, 1000, before)
    assert (counts, missed) == ({"frames": 1050, "budget": 1000}, [])
    write_actor_totals(run, 0, (599, 3))
    told = "actors count fewer frames than before, [0]"
    assert script.of_frames(run, 1000, before)[1] == [told]
    assert script.of_frames(run, 1100, {})[1] == ["1049 frames of a budget of 1100"]
    assert script.of_frames(run, 900, {})[1] == ["1049 frames of a budget of 900"]
