"""Hex from examples/own_game.py, played as a user's own game."""

import json
import sys
from pathlib import Path

import pytest

from tengen import cli

EXAMPLES = Path(__file__).parents[3] / "examples"

# The person plays X from top to bottom and ignores the opponent's moves.
WALK = ("c5", "c4", "c3", "c2", "c1")


@pytest.fixture
def run(tmp_path, publish_run, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return publish_run(tmp_path / "hex", "own_game:Hex", exports=False)


def joined(moves):
    """Returns whether the game has ended, and whether X (even plies) is connected."""
    from own_game import Hex

    game = Hex()
    state = game.initial_state()
    for move in moves:
        assert not game.is_terminal(state)
        state = game.apply(state, move)
    return game.is_terminal(state), game.is_joined(state, 1)


def test_a_scripted_game_on_the_terminal(run, type_in, capsys):
    # Every cell is tried; each occupied cell is refused with one line.
    cells = [f"{column}{row}" for column in "abcde" for row in range(1, 6)]
    script = "\n".join([*WALK, *cells, "quit"]) + "\n"
    type_in(script)
    command = ["play", str(run.path), "--simulations", "2", "--json"]
    command += ["--task", "own_game:Hex"]
    assert cli.main(command) == 0
    out = capsys.readouterr().out
    report = json.loads(out.splitlines()[-1])
    assert report["game"] == "own_game:Hex"
    assert report["finished"]
    is_over, first_won = joined(report["moves"])
    assert is_over
    assert report["score"] == float(first_won)
    assert ("you win" if first_won else "you lose") in out
    assert "c5 cannot be played here; try hint" in out or "the game is over" in out


def test_without_its_module_the_game_is_named(
    tmp_path, publish_run, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "moved_game.py"
    module.write_text((EXAMPLES / "own_game.py").read_text())
    run = publish_run(tmp_path / "run", "moved_game:Hex", exports=False)
    module.unlink()
    monkeypatch.delitem(sys.modules, "moved_game")
    assert cli.main(["play", str(run.path), "--task", "moved_game:Hex"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("tengen: task (moved_game:Hex) must name an importable ")
    assert err.count("\n") == 1
