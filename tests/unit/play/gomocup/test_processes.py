"""``tengen gomocup`` as a process: by a referee, in a match, and as it ends."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tengen import cli
from tengen.errors import RunError
from tengen.evaluation.engines.gomocup_client import GomocupEngine
from tengen.evaluation.engines.process import EngineRefusal

BENCHMARKS = Path(__file__).parents[4] / "benchmarks" / "engines"


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """A run of gomoku/6 with an untrained model."""
    return publish_run(tmp_path_factory.mktemp("runs") / "gomoku", "gomoku/6").path


def command(run, *words):
    return " ".join([sys.executable, "-m", "tengen", "gomocup", str(run), *words])


@pytest.fixture
def referee(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gomocup_referee")


def test_whole_games_by_the_referee(run, tmp_path, referee, monkeypatch, capsys):
    """Two processes, limits that are drawn; one ponders. Busy machines end no game."""
    out = tmp_path / "games.jsonl"
    words = ["--a", command(run, "--threads", "1", "--ponder", "--simulations", "64")]
    words += ["--b", command(run, "--threads", "1", "--simulations", "8")]
    words += ["--size", "6", "--games", "5", "--least-ms", "20000", "--seed", "8"]
    words += ["--most-ms", "60000", "--out", str(out), "--memory-mib", "2048"]
    monkeypatch.setattr(sys, "argv", ["gomocup_referee.py", *words])
    referee.main()
    *table, total = capsys.readouterr().out.splitlines()
    counts = json.loads(total)
    assert counts.pop("games") == 5
    assert set(counts) <= {"five", "draw"}, table
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["opening"] for line in lines} == {"empty", "board", "swap2"}
    # They are not played again, but for one that a kill left half written.
    kept = out.read_text()
    out.write_text(kept[:-20])
    referee.main()
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["games"] == 5
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert again[:4] == lines[:4]
    assert [line["game"] for line in again] == [line["game"] for line in lines]


def test_the_referee_has_rules(referee):
    board = referee.Board(6, exact=True)
    board.stones = {(x, x): 0 for x in range(4)} | {(5, 5): 0, (1, 0): 1}
    board.stones[(4, 4)] = 0
    assert not board.wins((4, 4))
    board.exact = False
    assert board.wins((4, 4))
    del board.stones[(5, 5)]
    board.exact = True
    assert board.wins((4, 4))
    for cell, text in (((1, 0), "is taken"), ((6, 0), "off the board")):
        with pytest.raises(referee.Fault, match=text):
            board.check(cell)
    with pytest.raises(referee.Fault, match="is no cell"):
        referee.read_cell("resign")


@pytest.mark.parametrize("last", [b"END\r\n", b""])
def test_a_process_ends_while_it_thinks(run, last):
    pipe = subprocess.PIPE
    words = command(run).split()
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdin.write(b"START 6\nINFO timeout_turn 1000000000\nBEGIN\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"OK\n"
        written, errors = process.communicate(last, timeout=900)
    assert process.returncode == 0
    assert errors == b""
    # END has no answer; the end of the input has what was found.
    assert (b"," in written) == (last == b"")


def test_limits_that_cannot_be_kept_and_a_kill(run):
    with GomocupEngine(command(run), 60.0) as engine:
        engine.tell("INFO max_memory 10000000")
        with pytest.raises(EngineRefusal, match=r"max_memory \(10000000\) must be at"):
            engine.start(6)
        engine.tell("INFO max_memory 0")
        engine.start(6)
        with pytest.raises(EngineRefusal, match="the board of the model"):
            engine.start(20)
        engine.kill()
        killed = r'engine \(.* gomocup .*\) ended when it was asked "BEGIN"'
        with pytest.raises(RunError, match=killed):
            engine.ask("BEGIN")


def test_a_match_against_its_own_process(run, capsys):
    # Two threads in one tree do not think alike twice.
    own = command(run, "--simulations", "4", "--threads", "1")
    words = ["match", str(run), f"gomocup:{own}"]
    words += ["--games", "2", "--simulations", "4", "--threads", "1", "--json"]
    assert cli.main(words) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    # The same player on both sides: what the first wins, it wins twice.
    assert report["score_a"] == 0.5
    assert report["engines"]["b"]["num_illegal"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--simulations", "0"], "simulations (0) must be"),
        (["--set", "search.policy=gumbel"], "search.policy (gumbel) must be puct"),
        (["--ponder", "--fresh"], "keeps its tree, which --fresh forbids"),
    ],
)
def test_bad_usage_is_one_line(run, capsys, words, message):
    assert cli.main(["gomocup", str(run), *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
