"""The benchmark of OpenSpiel's games measures what it says, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "selfplay" / "openspiel_games.py"


def test_it_plays_and_searches_on_both_sides() -> None:
    pytest.importorskip("pyspiel", reason="needs pip install 'open_spiel>=2.0'")
    words = ["--games", "nim mancala", "--simulations", "16", "--rounds", "1"]
    line = [sys.executable, "-P", str(SCRIPT), *words, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    *_, nim, mancala, last = done.stdout.splitlines()
    assert nim.startswith("| `nim` | ")
    assert mancala.startswith("| `mancala` | 14 | 18 x 1 x 1 | flat | ")
    for row in json.loads(last):
        assert row["plies"] > 1
        assert row["result"] in (0.0, 0.5, 1.0)
        for side in ("playouts", "their_playouts", "trees", "their_trees"):
            assert row[side] > 0
