"""``make wheels``, which takes half an hour on two cores and a gigabyte of packages."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.soak
def test_wheels_are_built_and_tried():
    command = [sys.executable, "scripts/build_wheels.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "untested: " in done.stdout
