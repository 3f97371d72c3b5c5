"""``tengen train`` and the roles reject invalid thread counts with one line."""

import sys

import pytest

from tests.integration.runs import run_command, train_command


@pytest.mark.parametrize("threads", ["0", "100000"])
def test_what_no_machine_has_is_refused_before_anything_is_written(tmp_path, threads):
    out = tmp_path / "run"
    done = run_command(train_command(out, 24, "--threads", threads))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: threads ({threads}) must be 1 to 1024;")
    assert not out.exists()
    role = [sys.executable, "-m", "tengen", "learn", str(out), "--threads", threads]
    done = run_command(role)
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: threads ({threads}) must be 1 to 1024;")
