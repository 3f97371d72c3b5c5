"""What cannot work is refused with one line, before anything is written."""

from __future__ import annotations

import sys

import pytest

from tengen import cli


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Runs a command that is refused; returns its line."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        assert cli.main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert list(tmp_path.iterdir()) == []
        return captured.err

    return run


@pytest.mark.parametrize(
    ("setting", "line"),
    [
        ("rating.opening_plies=9", "rating.opening_plies (9) must be 0 to 8; "),
        ("gate.opening_plies=9", "gate.opening_plies (9) must be 0 to 8; "),
    ],
)
def test_openings_longer_than_the_game(refused, setting, line):
    words = ["train", "tictactoe", "--minutes", "0.1", "--set", "gate.kind=match"]
    assert f"tengen: {line}" in refused(*words, "--set", setting)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["recipes", "--recipe", "zzz"], "recipe (zzz) must come with a task; "),
        (["recipes", "--openspiel", "x"], "task (x) does not go with --openspiel"),
        (
            ["recipes", "--openspiel", "--recipe", "x"],
            "recipe (x) does not go with --openspiel",
        ),
        (["train", "tictactoe", "--out", ""], "out () must name a directory; "),
        (["train", "tictactoe", "--games", "9" * 30], "must be 1 to 1000000000; "),
        (["train", "tictactoe", "--minutes", "1e308"], "must be above 0 and at most"),
    ],
)
def test_arguments_that_mean_nothing(refused, words, line):
    assert line in refused(*words)


def test_an_environment_without_gymnasium(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    line = refused("train", "CartPole-v1")
    assert line.startswith("tengen: task (CartPole-v1) is not known; ")
    assert "pip install --upgrade gymnasium" in line
    assert 'did you mean "connect4"?' in refused("train", "conect4")
