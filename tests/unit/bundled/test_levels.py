"""Strength levels: their names, and that higher levels are stronger."""

import dataclasses

import pytest

import tengen
from tengen import bundled, cli
from tengen.errors import UsageError
from tengen.evaluation.match import play_match
from tengen.evaluation.named_players import open_player
from tengen.games import open_game
from tengen.search import Level, draw_seed
from tests.refusals import refused

LEVELS = bundled.read_manifest("connect4").levels


@pytest.mark.parametrize("name", ["tictactoe", "connect4"])
def test_a_higher_level_beats_a_lower_one(name):
    """Equal players reach this score in fewer than one of 1000 matches of 60 games."""
    model = open_player(f"bundled:{name}")
    levels = bundled.read_manifest(name).levels
    low, high = levels[0], levels[3]
    report = play_match(
        open_game(name),
        dataclasses.replace(model, level=high),
        dataclasses.replace(model, level=low),
        num_games=60,
        seed=5,
    )
    assert report.tally.score > 0.7


def test_the_strongest_level_searches():
    model = open_player("bundled:connect4")
    report = play_match(
        open_game("connect4"),
        dataclasses.replace(model, level=LEVELS[5]),
        dataclasses.replace(model, level=LEVELS[2]),
        num_games=40,
        seed=1,
    )
    assert report.tally.score > 0.75


def test_a_match_by_levels_is_the_same_twice(capsys):
    def played():
        words = ["match", "connect4", "bundled:connect4", "--level", "3,beginner"]
        assert cli.main([*words, "--games", "12", "--seed", "3", "--json"]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert played() == played()


@pytest.mark.parametrize(
    ("word", "number"),
    [("1", 1), ("3", 3), ("beginner", 1), ("rating:-5000", 1), ("rating:99999", 8)],
)
def test_words_of_levels(word, number):
    found = bundled.find_level(bundled.read_manifest("connect4"), word)
    assert found == LEVELS[number - 1]


def test_the_nearest_rating():
    for level in LEVELS:
        word = f"rating:{level.rating:.0f}"
        assert bundled.level_of("bundled:connect4", word).rating == level.rating


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--level", "0"], "must be 1 to 8"),
        (["--level", "9"], "must be 1 to 8"),
        (["--level", "begginer"], 'did you mean "beginner"?'),
        (["--level", "rating:"], "must be a number"),
        (["--level", "2", "--simulations", "5"], "leave --simulations out"),
    ],
)
def test_a_wrong_level_is_one_line(words, told, capsys):
    assert cli.main(["play", "connect4", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_run_has_no_levels(tmp_path, publish_run, capsys):
    run = publish_run(tmp_path / "run", "tictactoe", exports=False)
    assert cli.main(["play", str(run.path), "--level", "2"]) == 2
    assert "needs a bundled player" in capsys.readouterr().err
    assert cli.main(["match", "random", "tictactoe", "--level", "2"]) == 2
    assert "not random" in capsys.readouterr().err


def test_of_b_alone(capsys):
    words = ["match", "random", "bundled:tictactoe", "--games", "2", "--json"]
    assert cli.main([*words, "--level", ",expert"]) == 0
    assert cli.main([*words, "--level", ",2,"]) == 2
    assert "or ,3" in capsys.readouterr().err


def test_a_weak_player_draws_by_the_seed():
    with tengen.load("bundled:connect4", level=1) as player:
        chosen = [player.choose([], seed=seed) for seed in range(30)]
        assert len(set(chosen)) > 3
        assert chosen == [player.choose([], seed=seed) for seed in range(30)]
    with tengen.load("bundled:connect4", level="expert") as player:
        assert player.analyse([]).num_simulations == 32
        assert len({player.choose([], seed=seed) for seed in range(5)}) == 1


def test_a_draw_is_as_likely_as_its_temperature_says():
    level = Level(temperature=2.0)
    drawn = [
        level.draw([7, 3, 5], [0.64, 0.04, 0.0], 7, draw_seed(1, i))
        for i in range(2000)
    ]
    # Square roots of the priors: 0.8 and 0.2, which sum to 1.
    assert 0.76 < drawn.count(7) / 2000 < 0.84
    assert drawn.count(5) == 0
    assert Level().draw([7, 3], [0.1, 0.9], 7, 0) == 7
    assert level.draw([7, 3], [0.0, 0.0], 3, 0) == 3


def test_a_draw_has_no_search_before_it():
    with refused(UsageError, "simulations (2)"):
        Level(simulations=2, temperature=1.0)


def test_a_weak_level_overlooks_a_threat():
    moves = [72, 4, 73, 5, 74, 6, 75]  # four in a row from the corner
    with tengen.load("bundled:gomoku/9", level=1) as player:
        assert len({player.choose(moves, seed=seed) for seed in range(20)}) > 5
    with tengen.load("bundled:gomoku/9") as player:
        assert player.choose(moves, simulations=1) == 76
