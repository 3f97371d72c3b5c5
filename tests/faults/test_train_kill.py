"""A run that is killed, at any instant or publish step, and resumed loses nothing.

The run after all kills must have the very bytes of a run that nobody killed: so no
game was lost, doubled or played otherwise. Games that were durable when the kill came
must be among them as they were.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tengen.observe import read_events
from tests.integration.runs import run_command, sealed, train_command, weights

GAMES = 72
# Where tengen.run.faults can kill: every step that makes something durable.
POINTS = (
    "publish.created",
    "publish.half_written",
    "publish.written",
    "publish.synced",
    "publish.renamed",
    "publish.done",
    "seal.gathered",
    "seal.published",
    "seal.journal_removed",
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference") / "run"
    done = run_command(train_command(out, GAMES))
    assert done.returncode == 0, done.stderr
    return out


def kill_after(command: list[str], seconds: float) -> None:
    """Starts a run and kills all of its processes at once."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def killed_at_random(out: Path, rng: random.Random, num_kills: int) -> None:
    command = train_command(out, GAMES)
    for _ in range(num_kills):
        kill_after(command, rng.uniform(0.2, 12.0))


def finish(out: Path) -> None:
    """Resumes until the run has as many games as the reference."""
    while len(sealed(out)) < 3:
        missing = 3 - len(sealed(out))
        done = run_command(train_command(out, 24 * missing))
        assert done.returncode == 0, done.stderr
    # One more look: the last generation may be sealed but not learned from.
    done = run_command([*train_command(out, 1)])
    assert done.returncode == 0, done.stderr


def assert_same(out: Path, reference: Path) -> None:
    ours, theirs = sealed(out), sealed(reference)
    assert {g: ours[g] for g in theirs} == theirs
    ours_models, their_models = weights(out), weights(reference)
    assert {n: ours_models[n] for n in their_models} == their_models


@pytest.mark.slow
def test_random_kills(reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed_at_random(out, random.Random(1), 4)
    finish(out)
    assert_same(out, reference)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["publish.renamed", "seal.published"])
def test_kill_at_a_publish_step(reference: Path, tmp_path: Path, point: str) -> None:
    out = tmp_path / "run"
    done = run_command(train_command(out, GAMES), fault=f"{point}:1")
    # The runner died, or it started a dead role again and redid its turn.
    restarts = len(list(out.glob("events/selfplay-*.jsonl")))
    assert done.returncode != 0 or restarts > 1
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("point", POINTS)
def test_every_publish_step(
    reference: Path, tmp_path: Path, point: str, count: int
) -> None:
    out = tmp_path / "run"
    run_command(train_command(out, GAMES), fault=f"{point}:{count}")
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_fifty_random_kills(reference: Path, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "run"
    killed_at_random(out, random.Random(100 + seed), 5)
    finish(out)
    assert_same(out, reference)


@pytest.mark.slow
def test_damage_in_a_journal_is_told_and_the_game_is_played_again(
    reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    # Dies at every attempt to seal the first generation: its journals are whole.
    done = run_command(train_command(out, 24), fault="seal.gathered:1")
    assert done.returncode == 1, done.stderr
    journal = min(
        out.glob("experience/*/*/*.journal"), key=lambda p: int(p.parent.name)
    )
    content = bytearray(journal.read_bytes())
    at = len(content) // 2
    content[at] ^= 0x10
    journal.write_bytes(content)

    done = run_command(train_command(out, 24))
    assert done.returncode == 0, done.stderr
    assert f"journal ({journal}) is damaged at byte" in done.stdout
    turns = [
        event
        for path in out.glob("events/train-*.jsonl")
        for event in read_events(path)
        if event["kind"] == "turn" and event.get("journal_gaps")
    ]
    ((gap,),) = [turn["journal_gaps"] for turn in turns]
    assert gap.startswith(f"journal ({journal}) is damaged at byte")
    assert sealed(out)[1] == sealed(reference)[1]
