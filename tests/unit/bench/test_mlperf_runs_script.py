"""The script that makes the benchmark's runs: its score, and how it goes on."""

import csv
import fcntl
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.refusals import refused

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "learning"

# The ten runs of minigo on one DGX A100 in MLPerf training v2.1, in seconds, from the
# eval_result lines of the logs that NVIDIA submitted.
DGX_A100 = (
    *(11166.746, 12164.612, 12160.752, 12074.891, 11317.875),
    *(10236.657, 10710.156, 10705.375, 11518.922, 10654.369),
)

# Stands for tengen: a first call that is to hang starts a process, publishes models and
# waits to be killed; any other passes. Run 3 fails, and no model of run 4 passes.
STUB = """
import fcntl, json, os, signal, subprocess, sys, time
from pathlib import Path
run = Path(sys.argv[sys.argv.index("--out") + 1])
seed = sys.argv[sys.argv.index("--seed") + 1]
is_first = not run.exists()
(run / "eval" / "target").mkdir(parents=True, exist_ok=True)
print(" ".join(sys.argv[1:]), flush=True)
if seed == "3":
    sys.exit(1)
hangs = is_first and os.environ["STUB"] == "hang"
if hangs:
    held = open(run / "held", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    subprocess.Popen(["sleep", "60"], pass_fds=[held.fileno()])
while time.process_time() < 0.2:
    pass
for model in range(4):
    (run / "models" / f"{model:06d}").mkdir(parents=True, exist_ok=True)
if hangs:
    signal.pause()
passed = {"passed": 2, "passed_after_s": 100.5 * int(seed)}
if seed == "4":
    passed = dict.fromkeys(passed)
passed |= {"smoothed_after_s": None, "confirmation": {"win_rate": 0.5625}}
(run / "eval" / "target" / "000001.json").write_text(json.dumps({"win_rate": 0.25}))
(run / "eval" / "target" / "000002.json").write_text(json.dumps({"win_rate": 0.5}))
(run / "eval" / "target" / "result.json").write_text(json.dumps(passed))
"""


def becomes_free(path):
    """Returns whether those that held a lock die; waits for them."""
    with open(path) as file:
        for _ in range(200):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
            else:
                return True
    return False


@pytest.fixture
def script(load_script, monkeypatch, tmp_path):
    found = load_script("learning/mlperf_runs")
    stub = tmp_path / "stub.py"
    stub.write_text(STUB)
    found.TENGEN = [sys.executable, str(stub)]
    found.LOOK_S, found.KILL_AFTER_S = 0.01, 0.0
    monkeypatch.setenv("STUB", "pass")
    return found


@pytest.mark.parametrize(
    ("times", "mean", "is_failure"),
    [
        (DGX_A100, 90309.086 / 8, False),
        ([5.0, 1.0, 3.0], 3.0, False),
        ([1.0, 2.0, 4.0, 100.0], 3.0, False),
        # One that did not pass is the slowest, and the next one counts.
        ([1.0, 2.0, None, 4.0], 3.0, False),
        ([None, *range(1, 10)], 5.5, False),
        ([7.0, 7.0, 7.0, 7.0], 7.0, False),
        ([1.0, None, None, 4.0], None, True),
        ([None] * 10, None, True),
        ([1.0, 2.0], None, False),
        ([1.0, None], None, True),
        ([1.0], None, False),
        ([], None, True),
    ],
)
def test_the_score_leaves_the_fastest_and_the_slowest_out(
    script, times, mean, is_failure
):
    found = script.score(times)
    assert found == (None if mean is None else pytest.approx(mean, abs=1e-9))
    assert script.too_few_passed(times) == is_failure


def test_the_score_of_published_runs_is_told(script):
    assert script.verdict(DGX_A100) == [
        "10 of 10 runs passed",
        "10,236.7 to 12,164.6 s, mean 11,271.0 s, standard deviation 698.9 s",
        "score without the fastest and the slowest of 10: 11,288.6 s (188.14 min)",
    ]


def test_fewer_runs_have_no_score_of_mlperf(script):
    assert script.verdict([60.0, 120.0, None]) == [
        "2 of 3 runs passed",
        "60.0 to 120.0 s, mean 90.0 s, standard deviation 42.4 s",
        "mean, and no MLPerf score, without the fastest and the slowest of 3: 120.0 s "
        "(2.00 min)",
    ]
    assert script.verdict([None]) == [
        "0 of 1 runs passed",
        "no score: it needs three runs, of which one may not have passed",
    ]


@pytest.mark.parametrize(
    ("seed", "more", "told"),
    [
        (4, [], "0 of 1 runs passed"),
        (3, [], "seed 3: exit code 1, see"),
        (1, ["--restart-one"], "ended before it could be killed"),
    ],
)
def test_a_run_that_fails_is_told_of(script, tmp_path, capsys, seed, more, told):
    script.KILL_AFTER_S = 1000.0
    words = ["--out", str(tmp_path / "out"), "--target", "T", "--runs", "1", *more]
    assert script.main([*words, "--first-seed", str(seed)]) == 1
    assert told in "".join(capsys.readouterr())
    if not more:
        kept = json.loads((tmp_path / "out" / f"seed-{seed}.json").read_text())
        assert (kept["num_calls"], kept["num_kills"]) == (1, 0)


def test_runs_are_made_once_and_told(script, tmp_path, capsys):
    words = ["--out", str(tmp_path / "out"), "--target", "T", "--runs", "2"]
    # Two runs make no score; both passed.
    assert script.main([*words, "--set", "a.b=1"]) == 0
    told = capsys.readouterr()
    assert told.err.count("train go/7 --recipe mlperf_minigo_small") == 2
    log = (tmp_path / "out" / "seed-2.log").read_text()
    assert "--seed 2 --set agent.target.opponent=T --set a.b=1 --out" in log
    assert told.out.splitlines()[2].startswith(
        "| 1 | 2 | 100.5 | - | 0.5 | 0.5625 | 2 |"
    )
    with open(tmp_path / "out" / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seconds"] for row in rows] == ["100.5", "201.0"]
    assert [row["num_calls"] for row in rows] == ["1", "1"]
    for row in rows:
        assert 0.2 <= float(row["cpu_seconds_to_pass"]) <= float(row["cpu_seconds"])
    assert rows[0]["smoothed_seconds"] == ""
    # Once more: nothing is run, and the table is the same.
    assert script.main([*words, "--set", "a.b=1"]) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (told.out, "")
    assert script.main(["--out", str(tmp_path / "out"), "--table"]) == 0
    assert capsys.readouterr().out == told.out
    # Another command's folder is not touched.
    assert script.main([*words, "--set", "a.b=2"]) == 1
    assert "is of another command" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_bad_usage(script, tmp_path, capsys):
    file = tmp_path / "file"
    file.touch()
    with refused(SystemExit, "2"):
        script.main(["--out", str(file), "--target", "T"])
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.endswith(f"error: --out ({file}) cannot be made, File exists")


def test_one_run_is_killed_and_goes_on(script, tmp_path, monkeypatch):
    monkeypatch.setenv("STUB", "hang")
    words = ["--out", str(tmp_path / "out"), "--target", "T", "--runs", "1"]
    assert script.main([*words, "--restart-one"]) == 0
    row = script.read_row(tmp_path / "out", 1)
    assert (row["num_calls"], row["num_kills"], row["seconds"]) == (2, 1, 100.5)
    # Models 1 to 3 are the first call's, which was killed; the second made no more.
    assert 0.2 <= row["cpu_seconds_to_pass"] <= row["cpu_seconds"] - 0.2
    kept = json.loads((tmp_path / "out" / "seed-1.json").read_text())
    assert list(kept["cpu_s_of_models"]) == ["1", "2", "3"]
    log = (tmp_path / "out" / "seed-1.log").read_text().splitlines()
    assert len(log) == 2
    assert log[0] == log[1]
    # What the first call had started was killed with it.
    assert becomes_free(tmp_path / "out" / "seed-1" / "held")


def test_sigterm_stops_the_run_too(script, tmp_path, monkeypatch):
    monkeypatch.setenv("STUB", "hang")
    out = tmp_path / "out"
    code = (
        f"import sys; sys.path.insert(0, {str(SCRIPTS)!r}); import mlperf_runs\n"
        f"mlperf_runs.TENGEN = {script.TENGEN!r}\n"
        f"sys.exit(mlperf_runs.main(['--out', {str(out)!r}, '--target', 'T']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True
    )
    models = out / "seed-1" / "models" / "000003"
    for _ in range(400):
        if models.exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=900)
    assert process.returncode == 1
    assert "seed 1: exit code -2, see" in told
    assert json.loads((out / "seed-1.json").read_text())["num_calls"] == 1
