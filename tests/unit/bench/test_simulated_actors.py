"""Simulated actors are answered, and of a killed process its own are lost alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "simulated_actors.py"


@pytest.mark.skipif(sys.platform != "linux", reason="the load waits by epoll")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("way", [[], ["--tcp"]], ids=["memory", "stream"])
def test_the_script_measures_and_kills(way: list[str]) -> None:
    load = ["--actors", "30", "--processes", "2"]
    rounds = ["--rounds", "1", "--seconds", "0.3", "--json"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *load, *rounds, *way], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["lost"]["num_lost"] == 3
    assert report["lost"]["num_sessions"] == 27
    assert report["server"]["rate"] > 0
    assert report["batch_rows"] >= 1
