"""Simulated actors are answered, and of a killed process its own are lost alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "cluster" / "simulated_actors.py"


@pytest.mark.skipif(sys.platform != "linux", reason="the load waits by epoll")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("num_actors", "num_lost", "way"),
    [(30, 3, []), (30, 3, ["--tcp"]), (2, 1, [])],
    ids=["memory", "stream", "two"],
)
def test_the_script_measures_and_kills(
    num_actors: int, num_lost: int, way: list[str]
) -> None:
    load = ["--actors", str(num_actors), "--processes", "3"]
    rounds = ["--rounds", "1", "--seconds", "0.3", "--json"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *load, *rounds, *way],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["lost"]["num_lost"] == num_lost
    assert report["lost"]["num_sessions"] == num_actors - num_lost
    assert report["server"]["rate"] > 0
    assert report["batch_rows"] >= 1


@pytest.mark.parametrize("option", ["--actors", "--processes"])
def test_one_alone_cannot_be_killed_and_measured(option: str) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, option, "1"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "must be at least 2, as one is killed" in done.stderr
