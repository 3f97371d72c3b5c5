"""What a recipe makes of the time and the cores that it is given."""

import pytest

from tengen.nets import parse_net
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles import NetStage, read_config
from tengen.run import RunDirectory


@pytest.mark.parametrize("task", ["connect4", "gomoku/9", "gomoku/15"])
def test_a_longer_run_grows_later_and_a_short_one_not_within_its_time(task):
    (short,) = make_config(task, None, None, 20.0).stages
    (long,) = make_config(task, None, None, 60.0).stages
    (longer,) = make_config(task, None, None, 600.0).stages
    assert longer.generation == pytest.approx(10 * long.generation, rel=0.05)
    # Grown after 40 core-minutes: twice what the short run has.
    assert short.generation == pytest.approx(long.generation * 40 / 24, rel=0.05)


@pytest.mark.parametrize(
    ("task", "core_minutes", "generation"),
    [
        ("connect4", 100.0, 160),  # 40 minutes of 4 generations each
        ("gomoku/9", 100.0, 76),  # of 1.9
        ("gomoku/15", 100.0, 10),  # 2.8 times the cells, squared: 7.7 times fewer
        ("gomoku/19", 40.0, 2),
    ],
)
def test_the_network_grows_once_games_are_plenty(task, core_minutes, generation):
    stage = NetStage(generation=generation, net=parse_net("4x64"))
    assert make_config(task, None, None, core_minutes).stages == (stage,)


@pytest.mark.parametrize(
    ("budget", "grows_at"),
    [
        ({"games": 1}, 160),
        ({"minutes": 5.0}, 160),
        ({}, 64),
        ({"minutes": 100.0}, 640),
        ({"minutes": 100.0, "threads": 1}, 160),
        ({"minutes": 100.0, "games": 7}, 160),
    ],
)
def test_what_a_new_run_records(tmp_path, monkeypatch, budget, grows_at):
    monkeypatch.setattr("tengen.recipes.run._train", lambda *words: {})
    monkeypatch.setattr("tengen.recipes.run.usable_threads", lambda asked: asked or 4)
    train_task("connect4", out=tmp_path / "run", **budget)
    (stage,) = read_config(RunDirectory(tmp_path / "run")).stages
    assert stage.generation == grows_at
