"""Programs of users run in their own folder; `make lint` checks their types."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "user_scripts"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package", "shown"),
    [
        ("play_bundled", "tengen", ("(1.0, -1.0)", "(-1.0, 1.0)", "(0.0, 0.0)")),
        ("vector_env", "gymnasium", ("[False False False False]",)),
        ("own_game", "tengen", ("3 stones, best is 3",)),
        ("own_environment", "gymnasium", ("measure its return",)),
    ],
)
def test_it_runs(name, package, shown, tmp_path):
    pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert any(text in done.stdout for text in shown), done.stdout
