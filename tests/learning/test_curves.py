"""Agents reach what is asked of them in the tasks that they are judged by.

Hours of training: `make soak` runs them, three seeds each, where the task's package is
installed. What is there already, in `build/curves`, is not made again.
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
def test_it_reaches_its_target(name: str) -> None:
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
