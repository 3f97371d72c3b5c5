"""Real models from disk: by run, by number and by directory."""

import json

import pytest

import tengen
from tengen import cli
from tengen.errors import UsageError


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """A run of tic-tac-toe with untrained models 3 and 17."""
    return publish_run(tmp_path_factory.mktemp("runs") / "ttt", "tictactoe", (3, 17))


def test_the_three_ways_to_name_a_model(run):
    words = (str(run.path), f"{run.path}@17", run.models.entry(17))
    answers = []
    for word in words:
        with tengen.load(word) as player:
            assert player.game.name == "tictactoe"
            answers.append(player.analyse([4, 0], simulations=50))
    assert answers[0] == answers[1] == answers[2]
    with tengen.load(f"{run.path}@3") as player:
        assert player.analyse([4, 0], simulations=50) != answers[0]


def test_more_threads_compile_the_same_model_again(run, monkeypatch):
    monkeypatch.setattr("tengen.run.machine.available_cores", lambda: 3)
    with tengen.load(f"{run.path}@3") as player:
        before = player.analyse([4, 0], simulations=50)
        many = player.analyse([4, 0], simulations=50, threads=3)
        assert many.num_simulations == 50
        assert [a.prior for a in sorted(many.actions, key=lambda a: a.action)] == [
            a.prior for a in sorted(before.actions, key=lambda a: a.action)
        ]
        assert player.analyse([4, 0], simulations=50) == before


def test_a_missing_number_is_named(run):
    with pytest.raises(UsageError, match=r"@5\) is not published"):
        tengen.load(f"{run.path}@5")


def test_two_models_of_a_run_meet(run, capsys):
    words = [f"{run.path}@3", f"{run.path}@17", "--games", "6", "--simulations", "16"]
    reports = []
    for threads in ("1", "3"):
        assert cli.main(["match", *words, "--json", "--threads", threads]) == 0
        reports.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert reports[0] == reports[1]
    assert reports[0]["games"] == 6
    code = cli.main(["match", *words, "--game", "connect4"])
    assert code == 2
    assert "must be tictactoe" in capsys.readouterr().err
