"""Matches against programs of the Gomocup protocol, sound ones and broken ones."""

import json
import sys
from pathlib import Path

import pytest

from tengen import cli, games
from tengen.errors import RunError, UsageError
from tengen.evaluation import (
    GomocupPlayer,
    MctsPlayer,
    RandomPlayer,
    fixed_player,
    play_match,
)
from tengen.evaluation.engines.gomocup_client import GomocupEngine, _find_answer
from tengen.evaluation.engines.side import check_engine
from tengen.evaluation.named_players import find_player

SLOW = Path(__file__).parents[2] / "oracle" / "slow_gomocup.py"


def command(*words):
    return " ".join([sys.executable, str(SLOW), *map(str, words)])


def player(*words, answer_s=60.0):
    return GomocupPlayer(command(*words), answer_s)


def match(a, b, task="gomoku/6", num_games=2, **settings):
    settings = {"opening_plies": 1, "seed": 5, **settings}
    return play_match(games.make(task), a, b, num_games=num_games, **settings)


def test_the_word_names_a_command():
    found = find_player("gomocup:./pbrain-x 1")
    assert found == GomocupPlayer("./pbrain-x 1")
    assert found.name == "gomocup:./pbrain-x 1"
    with pytest.raises(UsageError, match=r"player \(gomocup: \) must name a program"):
        find_player("gomocup: ")
    with pytest.raises(UsageError, match="which only tengen match plays"):
        fixed_player("gomocup:x")


@pytest.mark.parametrize("words", [(), ("talk",), ("suggest",), ("restart",)])
def test_the_same_games_whatever_an_engine_says_besides(words):
    report = match(player(*words), MctsPlayer(30), num_games=6, num_threads=2)
    sound = match(player(), MctsPlayer(30), num_games=6)
    assert report.games == sound.games
    seen = report.engines["a"]
    assert (seen.num_scored, seen.num_illegal) == (0, 0)


@pytest.mark.parametrize("opening_plies", [0, 3])
def test_an_engine_is_told_the_game(tmp_path, opening_plies):
    log = tmp_path / "log"
    engine = GomocupPlayer(command("log", log), turn_s=0.25)
    report = match(
        engine, RandomPlayer(), "gomoku/6/exact", 1, opening_plies=opening_plies
    )
    (game,) = report.games
    told = log.read_text().splitlines()
    assert told[0] == "START 6"
    infos = dict(line.split()[1:] for line in told if line.startswith("INFO"))
    assert infos["timeout_turn"] == "250"
    assert infos["rule"] == "1"
    assert infos["time_left"] == str(2**31 - 1)
    cells = [f"{move % 6},{move // 6}" for move in game.moves]
    # The engine has the first move, and the one after an opening of three plies not.
    if opening_plies == 0:
        assert "BEGIN" in told
        turns = cells[1::2]
    else:
        board = [line for line in told if line.count(",") == 2]
        owners = [line.rpartition(",")[2] for line in board]
        assert [line.rpartition(",")[0] for line in board] == cells[: len(board)]
        assert owners == ["1", "2"] * (len(board) // 2)
        turns = cells[5::2]
    said = [line.split()[1] for line in told if line.startswith("TURN")]
    assert said == turns[: len(said)]
    assert len(turns) - len(said) in (0, 1)  # nobody is told of the last move


@pytest.mark.parametrize(
    ("fault", "why"),
    [("taken", "the cell is taken"), ("off", "it is no cell"), ("word", "it is no")],
)
def test_an_illegal_move_loses(fault, why):
    report = match(player(fault), RandomPlayer(), num_games=4)
    assert [game.score_a for game in report.games] == [0.0] * 4
    assert report.engines["a"].num_illegal == 4
    assert why in report.engines["a"].first_illegal


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("die", r'ended when it was asked "(TURN|BOARD).*", saying "out of order"'),
        ("flood", r'answered "(TURN|BOARD).*" without an end'),
        ("deny", r'refused "(TURN|BOARD).*": ERROR not now; give it the same rules'),
        ("size", r'refused "START 6": ERROR 20 alone'),
        ("stranger", r'answered "START 6" by hello, which is no Gomocup protocol'),
    ],
)
def test_a_broken_engine_ends_the_match_and_finished_games_are_kept(fault, message):
    kept = []
    with pytest.raises(RunError, match=message):
        match(player(fault), RandomPlayer(), num_games=40, keep=kept.extend)
    assert all(played.score_a in (0.0, 0.5, 1.0) for played in kept)


def test_a_slow_engine_is_one_line(tmp_path, capsys):
    words = ["match", f"gomocup:{command('hang', tmp_path / 'child')}", "random"]
    words += ["--game", "gomoku/6", "--games", "1", "--answer-seconds", "2"]
    assert cli.main(words) == 1
    captured = capsys.readouterr()
    assert "within 2 s; make it faster" in captured.err
    assert captured.err.count("\n") == 1


def test_an_engine_is_tried_out():
    check_engine(player(), "gomoku/6")
    with pytest.raises(RunError, match="ERROR 20 alone"):
        check_engine(player("size"), "gomoku/6")


def test_answers_are_lines_with_any_end():
    rest = b"\r\n\rMESSAGE x\r\nOK\r\n1,"
    assert _find_answer(rest) == ("OK", b"\n1,")
    assert _find_answer(b"\n1,2\n") == ("1,2", b"")
    assert _find_answer(b"debug 1,1\r1,") == (None, b"1,")


def test_what_has_no_answer_waits_for_none():
    with GomocupEngine(command(), 60.0) as engine:
        engine.start(5)
        engine.tell("INFO rule 0")
        assert engine.ask("PLAY 0,0") == "0,0"
        engine.close()
    engine.kill()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--game", "go/6"], "plays gomoku, not go/6; choose a game gomoku/SIZE"),
        (["--game", "gomoku/4"], "task (gomoku/4)"),
        (["--game", "gomoku/6", "--turn-seconds", "-1"], "turn-seconds (-1.0)"),
        (
            ["--game", "gomoku/6", "--turn-seconds", "90"],
            "turn-seconds (90.0) must be below answer-seconds (60)",
        ),
    ],
)
def test_bad_usage_of_an_engine(capsys, words, message):
    assert cli.main(["match", f"gomocup:{command()}", "random", *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_the_command_line(capsys):
    words = ["match", "random", f"gomocup:{command('taken')}", "--game", "gomoku/6"]
    assert cli.main([*words, "--games", "2", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "B lost 2 games by an illegal move" in out
    assert "scores" not in out.replace("score of A", "")
    assert cli.main([*words, "--games", "2", "--threads", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["engines"]["b"]["num_illegal"] == 2
