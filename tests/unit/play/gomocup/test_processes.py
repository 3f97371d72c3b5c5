"""``tengen gomocup`` as a process: in a match, and as it ends."""

import json
import subprocess
import sys

import pytest

from tengen import cli, games
from tengen.errors import RunError
from tengen.evaluation.engines.gomocup import GomocupEngine
from tengen.evaluation.engines.process import EngineRefusal
from tests.refusals import refused


@pytest.fixture(scope="module")
def run(tmp_path_factory, publish_run):
    """A run of gomoku/6 with an untrained model."""
    return publish_run(tmp_path_factory.mktemp("runs") / "gomoku", "gomoku/6").path


def command(run, *words):
    return " ".join([sys.executable, "-m", "tengen", "gomocup", str(run), *words])


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
        with refused(EngineRefusal, "max_memory (10000000)"):
            engine.open(games.make("gomoku/6"))
        engine.tell("INFO max_memory 0")
        engine.open(games.make("gomoku/6"))
        with pytest.raises(EngineRefusal, match="the board of the model"):
            engine.ask("START 20")
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


def test_a_process_that_ponders_plays_whole_games(run, capsys):
    own = command(run, "--simulations", "64", "--threads", "1", "--ponder")
    words = ["match", "random", f"gomocup:{own}", "--game", "gomoku/6", "--json"]
    assert cli.main([*words, "--games", "2"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
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
