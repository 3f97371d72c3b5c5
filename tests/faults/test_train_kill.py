"""A run that is killed at any instant or publish step and resumed loses nothing.

The run after all kills must equal an uninterrupted run byte by byte, so no game was
lost, duplicated or changed. A discarded game would be replayed with the same bytes, so
each resumed generation must also report that it recovered all games that were durable
before the kill.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tengen.experience.games.segment import recorded_games
from tengen.observe import read_events
from tengen.run import RunDirectory
from tests.integration.runs import (
    SMALL,
    events,
    run_command,
    sealed,
    start_command,
    train_command,
    turns,
    wait_for,
    weights,
)

GAMES = 72
# The fault points of tengen.run.publish and of sealing, one per durable step.
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


# A generation that only a kill can end.
ENDLESS = (*SMALL, "agent.actor.games_per_generation=1000000")


def kill_after(command: list[str], seconds: float) -> None:
    """Starts a run and kills all of its processes after ``seconds``."""
    child = start_command(command)
    try:
        child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def durable(out: Path) -> tuple[int, list[int]]:
    """Returns the unsealed generation, and the indices of its durable games."""
    generation = max(sealed(out), default=0) + 1
    folder = out / "experience" / "selfplay-0"
    return generation, recorded_games(folder, generation).indices


def killed_at_random(out: Path, rng: random.Random, num_kills: int) -> None:
    command = train_command(out, GAMES)
    for _ in range(num_kills):
        kill_after(command, rng.uniform(0.2, 12.0))


def finish(out: Path) -> None:
    """Resumes the run until it has as many games as the reference."""
    while len(sealed(out)) < 3:
        missing = 3 - len(sealed(out))
        done = run_command(train_command(out, 24 * missing))
        assert done.returncode == 0, done.stderr
    # The learner may not have finished the last generation, so runs once more.
    done = run_command([*train_command(out, 1)])
    assert done.returncode == 0, done.stderr


def assert_same(out: Path, reference: Path) -> None:
    ours, theirs = sealed(out), sealed(reference)
    assert {g: ours[g] for g in theirs} == theirs
    ours_models, their_models = weights(out), weights(reference)
    assert {n: ours_models[n] for n in their_models} == their_models


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_durable_games_are_taken_over(tmp_path: Path, number: int) -> None:
    """All processes receive SIGKILL, or SIGTERM as from a session that closes."""
    out = tmp_path / "run"
    child = start_command(train_command(out, 1, settings=ENDLESS))
    journals = out / "experience" / "selfplay-0"
    wait_for(lambda: any(p.stat().st_size > 2048 for p in journals.glob("*/*.journal")))
    os.killpg(child.pid, number)
    child.communicate(timeout=900)
    assert child.returncode == (130 if number == signal.SIGTERM else -number)
    generation, games = durable(out)
    assert games
    before = len(turns(out, "selfplay"))
    # Shortens the generation to two games more than the last finished game.
    num_games = games[-1] + 3
    length = f"agent.actor.games_per_generation={num_games}"
    done = run_command(train_command(out, 1, settings=(*SMALL, length)))
    assert done.returncode == 0, done.stderr
    resumed = turns(out, "selfplay")[before:]
    resumed = [turn for turn in resumed if turn["generation"] == generation]
    assert [turn["num_recovered"] for turn in resumed] == [len(games)]
    assert resumed[0]["num_games"] == num_games


@pytest.mark.slow
def test_a_killed_runner_takes_its_roles_along(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run_command(train_command(out, 24), fault="publish.renamed:1:run.json")
    assert done.returncode == -signal.SIGKILL
    assert RunDirectory(out).lock_holder("train") is None
    assert run_command(train_command(out, 24)).returncode == 0
    assert sorted(sealed(out)) == [1]


@pytest.mark.soak
def test_random_kills(reference: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed_at_random(out, random.Random(1), 4)
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
@pytest.mark.parametrize(
    "fault", ["publish.renamed:1:checkpoints/", "seal.published:1:experience/"]
)
def test_kill_at_a_publish_step(reference: Path, tmp_path: Path, fault: str) -> None:
    """Each new process of the role dies at this step, and the runner restarts it."""
    out = tmp_path / "run"
    done = run_command(train_command(out, GAMES), fault=fault)
    assert done.returncode == 0 or "died 5 times in a row" in done.stderr
    assert events(out, "death")
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
def test_a_kill_between_epochs_costs_no_more_than_one(
    reference: Path, tmp_path: Path
) -> None:
    """Each learner process dies after two epochs."""
    out = tmp_path / "run"
    settings = (*SMALL, "learner.epoch_samples=96")
    fault = "publish.written:3:checkpoints/"
    command = train_command(out, GAMES, settings=settings)
    done = run_command(command, fault=fault)
    assert done.returncode == 0, done.stderr
    assert len([e for e in events(out, "death") if e["role"] == "learn"]) > 2
    assert_same(out, reference)


@pytest.mark.soak
@pytest.mark.parametrize("point", ["publish.written", "publish.renamed"])
def test_a_killed_shuffle_draws_the_same_again(
    reference: Path, tmp_path: Path, point: str
) -> None:
    """Each shuffle process dies at its second pass of the fault point."""
    out = tmp_path / "run"
    settings = (*SMALL, "store.drawn_by=shuffle")
    command = train_command(out, GAMES, settings=settings)
    done = run_command(command, fault=f"{point}:2:shuffled/")
    assert done.returncode == 0, done.stderr
    assert events(out, "death")
    assert len(sealed(out)) == 3
    assert_same(out, reference)
    names = [path.name for path in (out / "shuffled").iterdir()]
    assert all(name.isdecimal() for name in names)


# Each process counts its own passes; self-play seals three times in this run.
@pytest.mark.soak
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_every_publish_step(
    reference: Path, tmp_path: Path, point: str, count: int
) -> None:
    out = tmp_path / "run"
    done = run_command(train_command(out, GAMES), fault=f"{point}:{count}")
    # Either the runner died or one of its roles did.
    assert done.returncode == -signal.SIGKILL or events(out, "death")
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_fifty_random_kills(reference: Path, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "run"
    killed_at_random(out, random.Random(100 + seed), 5)
    finish(out)
    assert_same(out, reference)


@pytest.mark.soak
def test_damage_in_a_journal_is_told_and_the_game_is_played_again(
    reference: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    # Each attempt to seal the first generation dies, so the journals are complete.
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
