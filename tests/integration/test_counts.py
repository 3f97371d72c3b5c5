"""Counts that a run reports after kills, stops and with several writers."""

import json
import os
import sys

import pytest

from tengen import cli
from tengen.experience import ExperienceWriter, SegmentReader
from tengen.experience.games.segment import recorded_games
from tengen.roles.spent import read_spent
from tengen.run import RunDirectory
from tests.integration.runs import events, run_command, sealed, train_command


def sealed_counts(out):
    """Returns the total counts in the metadata of the sealed segments."""
    counts = {"num_games": 0, "num_rows": 0}
    for path in out.glob("experience/*/*/[0-9]*.npz"):
        with SegmentReader(path) as reader:
            for name in counts:
                counts[name] += int(reader.meta[name])
    return counts


def reported(output):
    return json.loads(output.splitlines()[-1])


TICKS_S = 0.2
"""A tolerance, because the system rounds each process's CPU time to 0.01 s."""


def cpu_s():
    """Returns the CPU seconds used so far by this process and its ended children."""
    return sum(os.times()[:4])


@pytest.mark.soak
def test_games_of_an_earlier_call_are_not_of_this_one(tmp_path):
    """Self-play processes die after the last game, and no game is replayed."""
    out = tmp_path / "run"
    fault = "seal.gathered:1:experience/"
    done = run_command(train_command(out, 24), fault=fault)
    assert "died 5 times in a row" in done.stderr
    assert len(recorded_games(out / "experience" / "selfplay-0", 1).indices) == 24
    done = run_command(train_command(out, 24, "--json"))
    assert done.returncode == 0, done.stderr
    turns = [e for e in events(out, "turn") if e["role"] == "selfplay"]
    assert [turn["num_recovered"] for turn in turns] == [24, 0]
    assert turns[0]["num_evaluations"] == 0
    assert sorted(sealed(out)) == [1, 2]
    report = reported(done.stdout)
    counts = {name: report[name] for name in ("num_games", "num_rows")}
    assert counts == sealed_counts(out)


@pytest.mark.soak
def test_a_second_writer_adds_its_games_to_the_run(tmp_path):
    out = tmp_path / "run"
    assert run_command(train_command(out, 24)).returncode == 0
    run = RunDirectory(out)
    role = [sys.executable, "-m", "tengen", "selfplay", str(out), "--once", "--json"]
    folder = run.experience / "selfplay-0"
    with ExperienceWriter(folder, run.new_incarnation("selfplay")):
        assert run_command(role).returncode == 0
    assert (run.experience / "selfplay-1" / "3" / "000002.npz").exists()
    done = run_command(train_command(out, 24, "--json"))
    assert done.returncode == 0, done.stderr
    assert sorted(sealed(out)) == [1, 2, 3]
    assert reported(done.stdout)["num_games"] == 72


def test_a_call_whose_budget_is_too_small_to_learn_has_failed(tmp_path, capsys):
    before_s = cpu_s()
    words = ["train", "CartPole-v1", "--agent", "dqn", "--out", str(tmp_path / "run")]
    assert cli.main([*words, "--frames", "64", "--threads", "1"]) == 1
    assert "this call learned nothing: " in capsys.readouterr().out
    # The same command resumes with the stored steps, which now suffice for learning.
    assert cli.main([*words, "--frames", "4k", "--threads", "1"]) == 0
    assert "learned nothing" not in capsys.readouterr().out
    # The run records the CPU time of its processes, not the elapsed time.
    run = RunDirectory(tmp_path / "run")
    assert 0.0 < 60 * read_spent(run).core_minutes <= cpu_s() - before_s + TICKS_S
