"""Matches against programs that speak GTP, sound ones and broken ones."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tengen import _core, cli, games
from tengen.config import from_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation import (
    GtpPlayer,
    MatchStopped,
    RandomPlayer,
    open_player,
    play_match,
)
from tengen.evaluation.engines.gtp_client import GtpEngine
from tengen.evaluation.engines.gtp_seat import _why_illegal
from tengen.evaluation.engines.process import EngineRefusal
from tengen.evaluation.engines.side import _points
from tengen.evaluation.played_game import PlayedGame
from tengen.games.sgf import read_sgf

SLOW = Path(__file__).parents[2] / "oracle" / "slow_gtp.py"


def command(*words):
    return " ".join([sys.executable, str(SLOW), *map(str, words)])


def player(*words, answer_s=60.0):
    return GtpPlayer(command(*words), answer_s)


def match(a, b, task="go/4", num_games=2, **settings):
    settings = {"opening_plies": 1, "seed": 5, **settings}
    return play_match(games.make(task), a, b, num_games=num_games, **settings)


def test_the_word_names_a_command():
    assert open_player("gtp:gnugo --mode gtp") == GtpPlayer("gnugo --mode gtp")
    assert open_player("gtp:x y").name == "gtp:x y"
    with pytest.raises(UsageError, match=r"player \(gtp: \) must name a program"):
        open_player("gtp: ")


@pytest.mark.parametrize(
    "task",
    ["go/3", "go/4x3/komi=0", "go/7/handicap=3/plies=60"],
)
def test_an_engine_on_slow_rules_agrees_on_every_score(task):
    report = match(player(), RandomPlayer(), task, 6, num_threads=2)
    assert [game.index for game in report.games] == list(range(6))
    rules = _core.parse_go_name(task)
    num_points = rules.height * rules.width
    num_ended = sum(game.moves[-2:] == (num_points,) * 2 for game in report.games)
    seen = report.engines["a"]
    assert seen.num_scored == num_ended > 0
    assert (seen.num_disagreements, seen.num_illegal) == (0, 0)
    for even, odd in zip(report.games[::2], report.games[1::2], strict=True):
        assert even.a_moves_first
        assert not odd.a_moves_first
        assert even.moves[:1] == odd.moves[:1]


def test_sides_may_be_exchanged_and_both_be_engines(hash_player):
    for other in (RandomPlayer(), player(), hash_player("go/4")):
        report = match(other, player(), num_simulations=4)
        assert report.tally.num_games == 2
        assert report.engines["b"].num_disagreements == 0
        assert ("a" in report.engines) == isinstance(other, GtpPlayer)


def test_the_same_seed_gives_the_same_games_whatever_the_threads(hash_player):
    reports = [
        match(
            hash_player("go/4"), player(), num_games=6, num_simulations=8, num_threads=n
        )
        for n in (1, 3)
    ]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("fault", ["score", "seki"])
def test_another_score_is_counted_and_shown(fault):
    report = match(player(fault), RandomPlayer(), "go/4/komi=0.5", num_games=8)
    seen = report.engines["a"]
    assert seen.num_disagreements == seen.num_scored > 0
    ended = [game for game in report.games if game.moves[-2:] == (16, 16)]
    # The engine has White win them all.
    won_by_black = [game for game in ended if game.a_moves_first == (game.score_a == 1)]
    assert seen.num_other_winners == len(won_by_black)
    assert 0 < len(won_by_black) < len(ended)
    first = ended[0]
    assert f"game {first.index} is " in seen.first_disagreement
    assert "W+99.5 to the engine" in seen.first_disagreement
    says_seki = seen.first_disagreement.endswith(", which sees 3 stones in seki")
    assert says_seki == (fault == "seki")
    content = json.loads(json.dumps(report.to_json()))
    assert content["engines"]["a"]["num_disagreements"] == seen.num_disagreements


@pytest.mark.parametrize("fault", ["resign", "taken", "vertex"])
def test_resignations_and_illegal_moves_lose(fault):
    report = match(player(fault), RandomPlayer(), num_games=4)
    # Four engines sit at four games, and each fails at its second move.
    assert [game.score_a for game in report.games] == [0.0] * 4
    seen = report.engines["a"]
    assert seen.num_illegal == (0 if fault == "resign" else 4)
    assert report.games[0].illegal == seen.first_illegal
    for game in report.games:
        assert bool(game.illegal) == (fault != "resign")
        assert from_dict(PlayedGame, game.to_json(), where="game") == game
    if fault == "taken":
        assert "the point is taken" in seen.first_illegal
    if fault == "vertex":
        assert "Z99, is not legal in go/4: it is no vertex" in seen.first_illegal


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("die", r'ended when it was asked "genmove [bw]", saying "out of order"'),
        ("garbage", r'answered "genmove [bw]" by hello, which is no GTP'),
        ("flood", r'answered "genmove [bw]" without an end'),
        ("deny", r'refused "genmove [bw]": not now; give it the same rules'),
    ],
)
def test_a_broken_engine_ends_the_match_and_finished_games_are_kept(fault, message):
    kept = []
    with pytest.raises(RunError, match=message):
        match(player(fault), RandomPlayer(), num_games=40, keep=kept.extend)
    assert all(played.score_a in (0.0, 1.0) for played in kept)


def wait_for(condition):
    """Waits as long as a slow machine may need; the caller then sees what is."""
    until = time.monotonic() + 600.0
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def is_gone(note):
    """Whether the process whose number a file has is no more."""
    with contextlib.suppress(FileNotFoundError):
        stat = Path(f"/proc/{note.read_text()}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] in "ZX"
    return True


def test_a_slow_engine_is_ended_with_its_children(tmp_path):
    note = tmp_path / "child"
    with GtpEngine(command("hang", note), 60.0) as engine:
        engine.ask("boardsize 4")
        engine.ask("genmove b")
        engine._answer_s = 0.1
        with pytest.raises(RunError, match=r'must answer "genmove w" within 0.1 s'):
            engine.ask("genmove w")
        assert wait_for(lambda: note.exists() and note.read_text())
        assert not is_gone(note)
    assert wait_for(lambda: is_gone(note))


def test_a_watcher_ends_a_match_while_an_engine_thinks(tmp_path):
    note = tmp_path / "child"

    def watch(tally):
        if note.exists() and note.read_text() != "":
            raise MatchStopped

    with pytest.raises(MatchStopped):
        match(player("hang", note), RandomPlayer(), num_games=1, watch=watch)
    assert wait_for(lambda: is_gone(note))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("version",), r"must speak GTP 2, not 3"),
        (("commands",), r"must know genmove"),
    ],
)
def test_what_is_no_engine_is_refused(words, message):
    with pytest.raises(UsageError, match=message):
        GtpEngine(command(*words), 60.0)


@pytest.mark.parametrize("line", ["no-such-program-at-all --gtp", "'"])
def test_a_command_that_cannot_be_started(line):
    with pytest.raises(UsageError, match="cannot be started"):
        GtpEngine(line, 60.0)


def test_an_engine_that_ends_at_once():
    with pytest.raises(RunError, match=r'ended when it was asked "protocol_version"'):
        GtpEngine(f"{sys.executable} -c pass", 60.0)


def test_an_engine_is_asked_and_closed():
    with GtpEngine(command(), 60.0) as engine:
        engine.ask("boardsize 5")
        assert engine.ask("play b A1") == ""
        assert engine.ask("final_score") == "B+17.5"
        with pytest.raises(EngineRefusal):
            engine.ask("komi x")
        engine.close()
    engine.kill()


def test_superko_is_told_from_other_reasons():
    rng, told = _core.Rng(3), set()
    while told != {"superko", "other"}:
        state, moves = games.make("go/3").new_state(), []
        while not state.is_terminal():
            for action in set(range(9)) - set(state.legal_actions()):
                why = _why_illegal("go/3", moves, action)
                stands = state.observation()[1:3].reshape(2, 9)[:, action].any()
                told.add("superko" if "superko" in why else "other")
                assert not ("superko" in why and stands)
            legal = state.legal_actions()
            moves.append(legal[rng.below(len(legal))])
            state.apply(moves[-1])


@pytest.mark.parametrize(
    ("text", "points"),
    [("B+3.5", 3.5), ("w+0.5", -0.5), ("0", 0.0), ("B+R", None), ("", None)],
)
def test_scores_are_read(text, points):
    assert _points(text) == points


def test_the_command_line(tmp_path, capsys):
    folder = tmp_path / "games"
    words = ["match", f"gtp:{command()}", "random", "--game", "go/4", "--games", "3"]
    assert cli.main([*words, "--sgf", str(folder), "--threads", "1"]) == 0
    assert "A scores" in capsys.readouterr().out
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["000000.sgf", "000001.sgf", "000002.sgf"]
    records = [read_sgf(path.read_bytes()) for path in paths]
    assert [record.white for record in records].count("random") == 2
    assert records[1].black == "random"
    for record in records:
        score = _core.GoPosition("go/4", list(record.moves)).score()
        assert record.result == f"{'B' if score > 0 else 'W'}+{abs(score):g}"
    assert cli.main([*words, "--sgf", str(folder)]) == 2
    assert "must be new or empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--game", "connect4"], 2, "plays Go, not connect4"),
        (["--game", "go/4", "--answer-seconds", "0"], 2, "answer-seconds (0.0)"),
        (["--game", "go/30"], 2, "task (go/30)"),
    ],
)
def test_bad_usage_of_an_engine(capsys, words, code, message):
    assert cli.main(["match", f"gtp:{command()}", "random", *words]) == code
    assert message in capsys.readouterr().err


def test_a_dead_engine_is_exit_code_1(capsys):
    words = ["match", f"gtp:{command('die')}", "random", "--game", "go/4"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_sgf_is_for_go(tmp_path, capsys):
    words = ["match", "random", "random", "--game", "tictactoe", "--sgf"]
    assert cli.main([*words, str(tmp_path / "x")]) == 2
    assert "sgf" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    words[4] = "go/4"
    assert cli.main([*words, str(file)]) == 2
    assert "cannot be a folder" in capsys.readouterr().err


def test_an_interrupt_ends_the_engines(tmp_path):
    note = tmp_path / "child"

    def watch(tally):
        if note.exists() and note.read_text():
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        match(player("hang", note), RandomPlayer(), num_games=1, watch=watch)
    assert wait_for(lambda: is_gone(note))
