"""Threads beyond the machine: refused or cut, in one line, by train and the roles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.runs import run_command, sealed, train_command

CUT = "tengen: threads (64) must be at most 2, the cores that this process may use"


def test_a_run_goes_on_with_the_cores_there_are(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run_command(train_command(out, 24, "--threads", "64", cores=2))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(CUT) == 1
    assert len(sealed(out)) == 1


@pytest.mark.parametrize("threads", ["0", "100000"])
def test_what_no_machine_has_is_refused_before_anything_is_written(
    tmp_path: Path, threads: str
) -> None:
    out = tmp_path / "run"
    done = run_command(train_command(out, 24, "--threads", threads))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: threads ({threads}) must be 1 to 1024;")
    assert not out.exists()
    role = [sys.executable, "-m", "tengen", "learn", str(out), "--threads", threads]
    done = run_command(role)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: threads ({threads}) must be 1 to 1024;")
