"""A gate that is killed during a match resumes with the finished games."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tengen.experience.games.journal import read_journal
from tengen.models import load_model
from tengen.run import RunDirectory, move_directory
from tests.integration.runs import run_command, train_command

GATE = {
    "kind": "sprt",
    "elo0": -5.0,
    "elo1": 5.0,
    "max_games": 2000,
    "num_simulations": 32,
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run with a candidate that awaits its match."""
    out = tmp_path / "run"
    done = run_command(train_command(out, 24))
    assert done.returncode == 0, done.stderr
    made = RunDirectory(out)
    move_directory(made.models.entry(1), made.candidates.entry(1))
    content = made.read_run()
    content["config"]["agent"]["gate"] = GATE
    made.write_run(content)
    return made


def gate(run: RunDirectory, *, fault: str | None = None, threads: int = 2) -> str:
    """Runs one turn of the gate; returns its last line, or "" if ``fault`` kills it."""
    command = [sys.executable, "-m", "tengen", "gate", str(run.path)]
    command += ["--once", "--json", "--threads", str(threads)]
    done = run_command(command, fault=fault)
    if fault is None:
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]
    assert done.returncode == -signal.SIGKILL, done.stderr
    return ""


@pytest.mark.slow
def test_the_same_verdict_and_no_game_twice(run: RunDirectory, tmp_path: Path) -> None:
    other = RunDirectory(tmp_path / "other")
    shutil.copytree(run.path, other.path)
    whole = json.loads(gate(other, threads=1))["last"]

    # Killed twice during the match, then while the games are published.
    journals = run.eval / "gate-000001"
    indices: list[int] = []
    for number, fault in enumerate(
        ("match.kept:1", "match.kept:1", "publish.written:1:games/gate"), start=1
    ):
        gate(run, fault=fault)
        frames = read_journal(journals / f"{number}.journal").frames
        indices += [json.loads(frame)["index"] for frame in frames]
        assert run.candidates.numbers() == [1]
    assert len(set(indices)) == len(indices)

    resumed = json.loads(gate(run))["last"]
    assert resumed["num_recovered"] == len(indices)
    assert {**resumed, "num_recovered": 0} == whole
    name = "games/gate/000001/games.jsonl"
    assert (run.path / name).read_bytes() == (other.path / name).read_bytes()
    assert not journals.exists()
    assert [path.name for path in (run.games / "gate").iterdir()] == ["000001"]
    kept = (run.path / name).read_text().splitlines()
    assert {json.loads(line)["index"] for line in kept} <= set(indices)


@pytest.mark.soak
def test_killed_while_it_passes_over_older_candidates(run: RunDirectory) -> None:
    """Two of three equal candidates are rejected, with a kill after each rejection."""
    for number in (2, 3):
        shutil.copytree(run.candidates.entry(1), run.candidates.entry(number))
    content = run.read_run()
    content["config"]["agent"]["gate"] |= {"max_games": 4, "num_simulations": 4}
    run.write_run(content)
    for number in (1, 2):
        gate(run, fault=f"publish.renamed:1:rejected/{number:06d}")
    assert run.candidates.numbers() == [3]
    assert run.rejected.numbers() == [1, 2]

    last = json.loads(gate(run))["last"]
    assert (last["candidate"], last["num_recovered"]) == (3, 4)
    assert "passed_over" not in last
    places = (run.models.numbers(), run.rejected.numbers())
    assert places == (([0, 3], [1, 2]) if last["accepted"] else ([0], [1, 2, 3]))
    for folder, numbers in zip((run.models, run.rejected), places, strict=True):
        for number in numbers:
            load_model(folder.entry(number))
