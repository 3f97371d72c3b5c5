"""Agents reach their target returns in the benchmark tasks.

The training takes hours. `make soak` runs three seeds per task, if the task's package
is installed, and skips runs that exist in `build/curves`.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.learning.learning_runs import ROWS

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "atari": "ale_py",
    "football": "envpool",
    "minatar": "minatar",
    "minigrid": "minigrid",
    "mujoco": "mujoco",
    "popgym": "popgym",
    "vizdoom": "vizdoom",
}


@pytest.mark.soak
@pytest.mark.learning
@pytest.mark.parametrize("name", ROWS)
def test_it_reaches_its_target(name):
    suite, slash, _ = ROWS[name].task.partition("/")
    package = PACKAGES[suite] if slash else "gymnasium"
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    script = ROOT / "benchmarks" / "learning" / "learning_runs.py"
    out = ROOT / "build" / "curves"
    done = subprocess.run(
        [sys.executable, str(script), "--out", str(out), "--only", name],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stdout
