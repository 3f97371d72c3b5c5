"""``tengen gtp`` and ``tengen gomocup`` as processes: in matches, and at exit."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tengen import cli, games
from tengen.errors import RunError
from tengen.evaluation.engines.process import EngineRefusal
from tengen.evaluation.engines.protocols import GomocupEngine
from tests.refusals import refused

# Debian installs games in a folder outside root's PATH.
GNUGO = shutil.which("gnugo", path=os.environ.get("PATH", "") + ":/usr/games")
RULES = "--chinese-rules --positional-superko --allow-suicide --capture-all-dead"
TASKS = {"gtp": "go/5", "gomocup": "gomoku/6"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, publish_run):
    """Returns a run with an untrained model for each protocol."""
    folder = tmp_path_factory.mktemp("runs")
    return {name: publish_run(folder / name, TASKS[name]).path for name in TASKS}


def command(protocol, run, *words):
    return " ".join([sys.executable, "-m", "tengen", protocol, str(run), *words])


def match(capsys, *words):
    """Returns the JSON report of a match."""
    assert cli.main(["match", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize("protocol", TASKS)
def test_a_match_against_its_own_process(runs, capsys, protocol):
    # Two threads in one tree are not deterministic.
    few = ["--simulations", "4", "--threads", "1"]
    own = command(protocol, runs[protocol], *few)
    words = [runs[protocol], f"{protocol}:{own}", "--games", "2", *few]
    report = match(capsys, *words)
    # The same player on both sides, so the same colour wins both games.
    assert report["score_a"] == 0.5
    seen = report["engines"]["b"]
    assert seen["num_illegal"] == seen.get("num_disagreements", 0) == 0


def test_a_process_that_ponders_plays_whole_games(runs, capsys):
    words = ["--simulations", "16", "--threads", "1", "--ponder"]
    own = command("gomocup", runs["gomocup"], *words)
    words = ["random", f"gomocup:{own}", "--game", "gomoku/6", "--games", "2"]
    assert match(capsys, *words)["engines"]["b"]["num_illegal"] == 0


@pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")
def test_gnugo_and_we_agree_on_scores(runs, capsys):
    line = f"gtp:{GNUGO} --mode gtp --level 1 --seed 1 {RULES}"
    own = command("gtp", runs["gtp"], "--simulations", "4")
    for other, num_games in (("mcts:200", 6), (f"gtp:{own}", 2)):
        words = [line, other, "--game", "go/5", "--games", num_games]
        report = match(capsys, *words)
        assert report["games"] == num_games
        for seen in report["engines"].values():
            assert seen["num_scored"] > 0
            assert seen["num_disagreements"] == seen["num_illegal"] == 0


def test_the_end_of_input_is_exit_code_0(runs):
    done = subprocess.run(
        command("gtp", runs["gtp"]).split(),
        input=b"1 protocol_version\n",
        capture_output=True,
        timeout=900,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"=1 2\n\n", b"")


@pytest.mark.parametrize("last", [b"END\r\n", b""])
def test_a_process_ends_while_it_thinks(runs, last):
    pipe = subprocess.PIPE
    words = command("gomocup", runs["gomocup"]).split()
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdin.write(b"START 6\nINFO timeout_turn 1000000000\nBEGIN\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"OK\n"
        written, errors = process.communicate(last, timeout=900)
    assert process.returncode == 0
    assert errors == b""
    # END gets no response; at the end of input, the current best move is written.
    assert (b"," in written) == (last == b"")


def test_limits_that_cannot_be_kept_and_a_kill(runs):
    with GomocupEngine(command("gomocup", runs["gomocup"]), 60.0) as engine:
        engine.tell("INFO max_memory 10000000")
        with refused(EngineRefusal, "max_memory (10000000)"):
            engine.open(games.make("gomoku/6"))
        engine.tell("INFO max_memory 0")
        engine.open(games.make("gomoku/6"))
        with refused(EngineRefusal, "size (20)"):
            engine.ask("START 20")
        engine.kill()
        with refused(RunError, "engine (", " gomocup ", '"BEGIN"'):
            engine.ask("BEGIN")


@pytest.mark.parametrize(
    ("protocol", "words", "named"),
    [
        ("gtp", ["--simulations", "0"], "simulations (0)"),
        ("gtp", ["--set", "search.policy=gumbel"], "search.policy (gumbel)"),
        ("gtp", ["--threads", "0"], "threads (0)"),
        ("gtp", ["--ponder", "--fresh"], "--fresh"),
        ("gtp", ["--resign-below", "-1.01"], "resign-below"),
        ("gtp", ["--resign-below", "1"], "resign-below"),
        ("gtp", ["--resign-below", "nan"], "resign-below"),
        ("gomocup", ["--simulations", "0"], "simulations (0)"),
        ("gomocup", ["--set", "search.policy=gumbel"], "search.policy (gumbel)"),
        ("gomocup", ["--ponder", "--fresh"], "--fresh"),
    ],
)
def test_bad_usage_is_one_line(runs, capsys, protocol, words, named):
    assert cli.main([protocol, str(runs[protocol]), *words]) == 2
    captured = capsys.readouterr()
    assert named in captured.err
    assert captured.err.count("\n") == 1


def test_a_model_of_another_game_is_one_line(runs, capsys):
    assert cli.main(["gtp", str(runs["gomocup"])]) == 2
    captured = capsys.readouterr()
    assert "gomoku/6, which GTP" in captured.err
    assert captured.out == ""
