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


def test_an_environment_without_gymnasium(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    line = refused("train", "CartPole-v1")
    assert line.startswith("tengen: task (CartPole-v1) is not known; ")
    assert "pip install --upgrade 'tengen[envs]'" in line
    assert 'did you mean "connect4"?' in refused("train", "conect4")
