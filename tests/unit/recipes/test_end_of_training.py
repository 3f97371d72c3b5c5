"""What stands on the screen when ``tengen train`` ends, and what it returns."""

import dataclasses
import io
from types import SimpleNamespace

import pytest

from tengen.evaluation import MatchReport, Tally
from tengen.learners.checkpoint import write_checkpoint_json
from tengen.recipes import finale, make_config
from tengen.recipes import run as training
from tengen.roles import write_config
from tengen.run import RunDirectory

CONFIG = make_config("tictactoe", None, None)
GAME = SimpleNamespace(disputed=None)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Matches:
    """Stands in for ``play_match``: A wins every game, of so many seconds."""

    def __init__(self):
        self.game_s = 0.0
        self.now_s = 100.0
        self.lengths = []

    def __call__(self, *_, num_games, played, watch, **__):
        self.lengths.append(num_games)
        watch(Tally(len(played), 0, 0))
        self.now_s += self.game_s * (num_games - len(played))
        watch(Tally(num_games, 0, 0))
        return MatchReport(Tally(num_games, 0, 0), (GAME,) * num_games)

    def clock(self):
        return self.now_s


@pytest.fixture
def matches(monkeypatch):
    made = Matches()
    monkeypatch.setattr(finale, "play_match", made)
    monkeypatch.setattr(
        finale, "open_player", lambda word, **_: SimpleNamespace(name=word)
    )
    monkeypatch.setattr(finale, "games_jsonl", lambda games: b"")
    return made


def learning(monkeypatch, num_steps):
    """Makes a call learn so many steps in all, and its model have as many.

    No report says so, as where the budget ends while a report is under way.
    """

    def train(name, call):
        run = call.run
        number = (run.checkpoints.latest() or 0) + 1
        state = {"num_steps": num_steps, "extra": {}}
        run.checkpoints.publish(
            number, lambda folder: write_checkpoint_json(folder, state)
        )

    monkeypatch.setattr(training, "train_by", train)
    meta = SimpleNamespace(num_steps=num_steps)
    monkeypatch.setattr(finale, "read_meta", lambda *_, **__: meta)


def made_run(folder):
    run = RunDirectory.create_or_resume(folder)
    write_config(run, CONFIG)
    run.models.publish(3, lambda folder: None)
    return run


def test_the_last_lines_stand_below_the_panel(matches, tmp_path, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    made_run(tmp_path)
    learning(monkeypatch, 12)
    report = training.train_task("tictactoe", out=tmp_path, minutes=1000)
    assert report["exit_code"] == 0
    *_, result, farewell = stream.getvalue().strip().splitlines()
    assert "match at 64 simulations against bundled:tictactoe (lines not lost" in result
    assert ": 40 won, 0 drawn" in result
    assert farewell == f"play against it: tengen play {tmp_path}"


def test_a_network_that_learned_nothing_is_neither_rated_nor_offered(
    matches, tmp_path, monkeypatch, capsys
):
    made_run(tmp_path)
    learning(monkeypatch, 0)
    report = training.train_task("tictactoe", out=tmp_path, minutes=1)
    assert report["exit_code"] == 1
    assert "match" not in report
    assert not matches.lengths
    told = capsys.readouterr().out
    assert told.count("learned nothing") == 1
    assert "minutes (1)" in told
    assert "made no step" not in told
    assert "tengen play" not in told


def test_a_call_that_learned_nothing_fails_whatever_was_learned_before(
    matches, tmp_path, monkeypatch, capsys
):
    made_run(tmp_path)
    learning(monkeypatch, 12)
    words = {"out": tmp_path, "games": 1}
    assert training.train_task("tictactoe", **words)["exit_code"] == 0
    assert "learned nothing" not in capsys.readouterr().out
    assert training.train_task("tictactoe", **words)["exit_code"] == 1
    told = capsys.readouterr().out
    assert told.count("learned nothing") == 1
    assert f"tengen play {tmp_path}" in told  # there is a player, of the first call


def final_match(run, matches, seconds, progress=lambda report: None):
    return finale.final_match(
        CONFIG,
        run,
        num_threads=1,
        progress=progress,
        stop=lambda: False,
        seconds=seconds,
        clock=matches.clock,
    )


@pytest.mark.parametrize(
    ("seconds", "game_s", "lengths"),
    [
        (None, 1000.0, [40]),
        (600.0, 1.0, [8, 40]),
        # Two minutes of ten.
        (600.0, 5.0, [8, 24]),
        (600.0, 5.2, [8, 22]),
        (60.0, 60.0, [8, 8]),
        (600.0, 0.0, [8, 40]),
    ],
)
def test_the_closing_match_has_as_many_games_as_fit(
    matches, tmp_path, monkeypatch, seconds, game_s, lengths
):
    run = made_run(tmp_path)
    learning(monkeypatch, 12)
    matches.game_s = game_s
    report = final_match(run, matches, seconds)
    assert matches.lengths == lengths
    line = finale.match_line(report, CONFIG, seconds)
    least, of = 0.2 * (seconds or 0), seconds or 0
    told = f"; 40 games would take more than {least:.0f} s of {of:.0f} s"
    assert line.endswith(told) == (lengths[-1] < 40)


@pytest.mark.parametrize(
    ("task", "settings", "opponent"),
    [
        ("tictactoe", {}, "bundled:tictactoe"),
        ("gomoku/7", {}, "mcts:1000"),  # no player of this board is bundled
        ("gomoku/9", {"final_opponent": "mcts:30"}, "mcts:30"),
    ],
)
def test_the_closing_opponent_is_the_bundled_player_of_the_game(
    task, settings, opponent
):
    config = make_config(task, None, None)
    rating = dataclasses.replace(config.agent.rating, **settings)
    agent = dataclasses.replace(config.agent, rating=rating)
    changed = dataclasses.replace(config, agent=agent)
    assert finale.final_opponent(changed) == opponent


def test_the_closing_match_says_how_far_it_is(matches, tmp_path, monkeypatch):
    run = made_run(tmp_path)
    learning(monkeypatch, 12)
    told = []
    final_match(run, matches, None, told.append)
    assert [report["stage"] for report in told] == [
        "match, 0 of 40 games",
        "match, 40 of 40 games",
    ]
