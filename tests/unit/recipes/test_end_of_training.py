"""What stands on the screen when ``tengen train`` ends."""

from __future__ import annotations

import io

import pytest

from tengen.evaluation import MatchReport, Tally
from tengen.recipes import finale, make_config
from tengen.recipes import run as training
from tengen.roles import write_config
from tengen.run import RunDirectory


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def match(monkeypatch):
    """A closing match that is told of twice, and a run that learns nothing."""

    def play(*_, watch, **__):
        for num_won in (0, 30):
            watch(Tally(num_won, 0, 0))
        return MatchReport(Tally(40, 0, 0), ())

    monkeypatch.setattr(training, "run_by", lambda name: lambda *_, **__: None)
    monkeypatch.setattr(finale, "play_match", play)
    monkeypatch.setattr(finale, "open_player", lambda *_, **__: None)


def test_the_last_lines_stand_below_the_panel(match, tmp_path, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    run = RunDirectory.create_or_resume(tmp_path)
    write_config(run, make_config("tictactoe", None, None))
    run.models.publish(3, lambda folder: None)
    training.train_task("tictactoe", out=tmp_path, minutes=1)
    *_, result, farewell = stream.getvalue().strip().splitlines()
    assert "rating match at 64 simulations against mcts:1000: 40 won" in result
    assert farewell == f"play against it: tengen play {tmp_path}"


def test_the_closing_match_says_how_far_it_is(match, tmp_path):
    run = RunDirectory.create_or_resume(tmp_path)
    run.models.publish(3, lambda folder: None)
    told = []
    finale.final_match(
        make_config("tictactoe", None, None),
        run,
        num_threads=1,
        progress=told.append,
        stop=lambda: False,
    )
    assert [report["stage"] for report in told] == [
        "rating match, 0 of 40 games",
        "rating match, 30 of 40 games",
    ]
