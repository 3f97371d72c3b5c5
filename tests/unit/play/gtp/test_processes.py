"""``tengen gtp`` as a process: against itself, in a match, and against GNU Go."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tengen import _core, cli
from tengen.evaluation.engines.protocols import GtpEngine
from tengen.games.go_rules import read_vertex, write_vertex
from tengen.games.sgf import GoRecord, read_sgf, setup_moves

# Debian keeps games where the PATH of root does not look.
GNUGO = shutil.which("gnugo", path=os.environ.get("PATH", "") + ":/usr/games")
needs_gnugo = pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
RULES = "--chinese-rules --positional-superko --allow-suicide --capture-all-dead"


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """A run of go/5 with an untrained model."""
    return publish_run(tmp_path_factory.mktemp("runs") / "go", "go/5").path


def command(run, *words):
    return " ".join([sys.executable, "-m", "tengen", "gtp", str(run), *words])


def test_two_processes_play_a_game(run):
    line = command(run, "--simulations", "4")
    with GtpEngine(line, 60.0) as black, GtpEngine(line, 60.0) as white:
        for engine in (black, white):
            for setting in ("boardsize 5", "komi 6.5", "clear_board"):
                engine.ask(setting)
        moves = []
        while moves[-2:] != [25, 25] and len(moves) < 50:
            sides = (black, white) if len(moves) % 2 == 0 else (white, black)
            colour = "bw"[len(moves) % 2]
            vertex = sides[0].ask(f"genmove {colour}")
            sides[1].ask(f"play {colour} {vertex}")
            moves.append(read_vertex(vertex, 5, 5))
        score = _core.GoPosition("go/5/komi=6.5", moves).score()
        result = f"{'B' if score > 0 else 'W'}+{abs(score):g}"
        assert black.ask("final_score") == white.ask("final_score") == result
        record = read_sgf(white.ask("printsgf"))
        assert record.moves == tuple(moves)
        assert record.game == "go/5/komi=6.5"


def test_a_match_against_its_own_process(run, capsys):
    # Two threads in one tree do not think alike twice.
    own = command(run, "--simulations", "4", "--threads", "1")
    words = ["match", str(run), f"gtp:{own}"]
    words += ["--games", "2", "--simulations", "4", "--threads", "1", "--json"]
    assert cli.main(words) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    # The same player on both sides: what one colour wins, it wins twice.
    assert report["score_a"] == 0.5
    seen = report["engines"]["b"]
    assert seen["num_disagreements"] == seen["num_illegal"] == 0


@needs_gnugo
def test_gnugo_and_we_agree_on_scores(run, capsys):
    line = f"gtp:{GNUGO} --mode gtp --level 1 --seed 1 {RULES}"
    words = ["match", line, "mcts:200", "--game", "go/5", "--games", "6", "--json"]
    assert cli.main(words) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    seen = report["engines"]["a"]
    assert report["games"] == 6
    assert seen["num_scored"] > 0
    assert seen["num_disagreements"] == seen["num_illegal"] == 0


# A game of GNU Go against itself. A chain of each side lives beside the other in seki.
SEKI = """
. O O X X . X
O . O O X X X
. O . O X X .
O O O O O O X
O X X O O X X
O X X X X O X
O X . X . O .
"""


@needs_gnugo
def test_gnugo_counts_no_eyes_in_seki():
    """What it scores otherwise, to the point; by area they are the player's own."""
    rows = SEKI.split("\n")[1:-1]
    board = {
        (row, column): mark
        for row, line in enumerate(rows)
        for column, mark in enumerate(line.split())
    }
    by_colour = {
        colour: [7 * r + c for (r, c), mark in board.items() if mark == stone]
        for colour, stone in (("b", "X"), ("w", "O"))
    }
    record = GoRecord(
        game="go/7",
        first_player=0,
        black_stones=tuple(by_colour["b"]),
        white_stones=tuple(by_colour["w"]),
    )
    assert _core.GoPosition("go/7", setup_moves(record)).score() == -8.5
    line = f"{GNUGO} --mode gtp --level 1 --seed 1 {RULES}"
    with GtpEngine(line, 60.0) as engine:
        for setting in ("boardsize 7", "komi 7.5", "clear_board"):
            engine.ask(setting)
        for colour, points in by_colour.items():
            for point in points:
                engine.ask(f"play {colour} {write_vertex(point, 7, 7)}")
        assert engine.ask("final_score") == "W+11.5"
        seki = engine.ask("final_status_list seki").split()
        dame = engine.ask("final_status_list dame").split()
    # F7, G5 and C1 touch nothing but Black's stones, and those are in seki.
    eyes = []
    for (row, column), mark in board.items():
        sides = ((row - 1, column), (row + 1, column), (row, column - 1))
        near = {
            side: board[side] for side in (*sides, (row, column + 1)) if side in board
        }
        if mark == "." and set(near.values()) == {"X"}:
            eyes.append(write_vertex(7 * row + column, 7, 7))
            assert {write_vertex(7 * r + c, 7, 7) for r, c in near} <= set(seki)
    assert eyes == ["F7", "G5", "C1"]
    assert set(eyes) <= set(dame)
    assert len(eyes) == 11.5 - 8.5


@needs_gnugo
def test_a_process_plays_gnugo(run):
    gnugo = f"{GNUGO} --mode gtp --level 1 --seed 1 --never-resign {RULES}"
    with (
        GtpEngine(command(run, "--simulations", "4"), 60.0) as ours,
        GtpEngine(gnugo, 60.0) as theirs,
    ):
        vertices = []
        for engine in (ours, theirs):
            engine.ask("boardsize 5")
            engine.ask("komi 7.5")
        while [v.lower() for v in vertices[-2:]] != ["pass", "pass"]:
            assert len(vertices) < 50
            sides = (ours, theirs) if len(vertices) % 2 == 0 else (theirs, ours)
            colour = "bw"[len(vertices) % 2]
            vertices.append(sides[0].ask(f"genmove {colour}"))
            sides[1].ask(f"play {colour} {vertices[-1]}")
        assert ours.ask("final_score") == theirs.ask("final_score")


def answers(*words, text=""):
    done = subprocess.run(
        [sys.executable, "-m", "tengen", "gtp", *words],
        input=text.encode(),
        capture_output=True,
        timeout=900,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_the_end_of_input_is_exit_code_0(run):
    assert answers(str(run), text="1 protocol_version\n") == (0, "=1 2\n\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--simulations", "0"], "simulations (0) must be"),
        (["--set", "search.policy=gumbel"], "search.policy (gumbel) must be puct"),
        (["--threads", "0"], "threads (0) must be"),
    ],
)
def test_bad_usage_is_one_line(run, capsys, words, message):
    assert cli.main(["gtp", str(run), *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_a_model_of_another_game_is_one_line(tmp_path, publish_run, capsys):
    other = publish_run(tmp_path / "ttt", "tictactoe")
    assert cli.main(["gtp", str(other.path)]) == 2
    captured = capsys.readouterr()
    assert "plays tictactoe, which GTP does not" in captured.err
    assert captured.out == ""
