"""The script that learns from the games of a run: what it prints and refuses."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from tengen import cli

SCRIPTS = Path(__file__).parents[3] / "benchmarks" / "learning"
SETTINGS = (
    "agent.iterations=2",
    "agent.actor.games_per_generation=64",
    "agent.actor.full_simulations=32",
    "agent.actor.cheap_simulations=2",
    "agent.actor.num_slots=32",
    "agent.target.opponent=",
    "store.min_games=64",
    "learner.batch_size=16",
    "net.num_blocks=1",
    "net.num_channels=8",
    "inference.backend=torch",
    "inference.precision=fp32",
)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("net_on_games")


@pytest.mark.slow
def test_a_network_learns_from_games_and_is_measured_on_others(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    words = ["train", "go/5", "--recipe", "mlperf_minigo_small", "--out", str(run)]
    words += [word for one in SETTINGS for word in ("--set", one)]
    assert cli.main([*words, "--threads", "1"]) == 0
    capsys.readouterr()
    rates = ["--set", "learner.optimizer.rates=[0.002]"]
    rates += ["--set", "learner.optimizer.boundaries=[]"]
    asked = [str(run), "--rows", "8000", *rates]
    assert script.main(asked) == 0
    told, _, _, *rows = capsys.readouterr().out.splitlines()
    num_learned, num_kept, _ = (int(word) for word in told.split() if word.isdigit())
    assert num_learned > 0
    assert num_kept > 0
    found = [[float(cell) for cell in row.split("|")[1:-1]] for row in rows]
    assert [row[0] for row in found] == [1600, 3200, 4800, 6400, 8000]
    # It learns: the policy's loss on games that it never saw falls.
    assert found[-1][1] < found[0][1] - 0.02
    assert script.main(asked) == 0
    again = capsys.readouterr().out.splitlines()[3:]
    assert [row.split("|")[1:-2] for row in again] == [
        row.split("|")[1:-2] for row in rows
    ]


def test_what_has_no_such_games_is_refused(
    script: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("net_on_games: run (")
