"""Processes of a run with concurrent roles are killed or stopped.

Each game that was durable before a kill must stay in the run, once and unchanged.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen import _core
from tengen.experience.games.journal import read_journal
from tengen.run import RunDirectory, lock_holder
from tests.faults.role_processes import (
    SETTINGS,
    check_games,
    check_learner,
    check_leftovers,
    check_models,
    games_in_journals,
)
from tests.integration.runs import events, run_command, train_command, turns, wait_for

ROLES = ("selfplay", "learn", "export", "gate", "rate")
# With these settings each role has frequent turns.
BUSY = (
    *SETTINGS,
    "agent.rating.time_share=0.5",
    "agent.rating.final_games=0",
    "agent.rating.num_games=4",
    "agent.rating.round_games=4",
)
ENDLESS = (*BUSY, "agent.actor.games_per_generation=1000000")
FAR = 10**8


def command(out: Path, *extra: str, settings: tuple[str, ...] = BUSY) -> list[str]:
    return train_command(out, FAR, "--launch", "local", *extra, settings=settings)


def process_of(run: RunDirectory, role: str) -> int | None:
    """Returns the ID of the current process of a role."""
    if role == "selfplay":
        holder = lock_holder(run.experience / "selfplay-0" / "lock")
    else:
        holder = run.lock_holder(role)
    return None if holder is None else int(holder.split()[0])


def deaths(out: Path, role: str) -> list[str]:
    return [death["how"] for death in events(out, "death") if death["role"] == role]


def models_that_went_on(run: RunDirectory) -> set[int]:
    """Returns the models that took over games in progress, read from the journals."""
    found: set[int] = set()
    for path in run.experience.glob("selfplay-*/*/*.journal"):
        for frame in read_journal(path).frames:
            columns = _core.merge_games([frame], _core.decode_game(frame).generation)
            found.update(columns["switch_model"].tolist())
    return found


def goes_on(out: Path, role: str) -> Callable[[], bool]:
    """Returns a function that tells if a role has finished a turn since this call."""
    before = len(turns(out, role))
    return lambda: len(turns(out, role)) > before


@pytest.mark.soak
def test_a_kill_of_every_role(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    out = tmp_path / "run"
    run = RunDirectory(out)
    child = start(command(out))
    durable: dict[tuple[int, int], str] = {}
    for role in ROLES:
        wait_for(lambda role=role: turns(out, role))
        killed = process_of(run, role)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        durable |= {game: content for _, game, content in games_in_journals(run)}
        wait_for(lambda role=role: deaths(out, role))
        wait_for(goes_on(out, role))
        assert process_of(run, role) != killed
    assert {role: deaths(out, role) for role in ROLES} == {
        role: ["signal 9"] for role in ROLES
    }
    # A second runner is rejected while the first one works.
    done = run_command(command(out))
    assert done.returncode == 2
    assert "is in use by process" in done.stderr
    run.request_stop()
    output, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (0, "")
    assert output.count("died, signal 9; it is being restarted") == len(ROLES)
    assert check_games(run, durable) > len(durable)
    assert check_learner(run) > 1
    assert check_models(run) > 1
    check_leftovers(run, num_writers=1)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 130), (None, 0)],
)
def test_whatever_ends_it_saves_the_games_and_either_launcher_goes_on(
    tmp_path: Path,
    start: Callable[[list[str]], subprocess.Popen[str]],
    number: int | None,
    code: int,
) -> None:
    out = tmp_path / "run"
    run = RunDirectory(out)
    child = start(command(out, settings=ENDLESS))
    journals = run.experience / "selfplay-0"
    wait_for(
        lambda: any(p.stat().st_size > 2048 for p in journals.glob("*/*.journal")), 300
    )
    if number is None:
        stop = [sys.executable, "-m", "tengen", "stop", str(out)]
        assert run_command(stop).returncode == 0
    else:
        os.killpg(child.pid, number)
    _, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (code, "")
    durable = {game: content for _, game, content in games_in_journals(run)}
    kept = {index for _, index in durable}
    assert kept
    # The inline launcher resumes the generation; then the local launcher continues.
    num_games = max(kept) + 25
    length = f"agent.actor.games_per_generation={num_games}"
    for launcher, generation in (("inline", 1), ("local", 2)):
        more = train_command(out, 1, "--launch", launcher, settings=(*BUSY, length))
        done = run_command(more)
        assert done.returncode == 0, done.stderr
        turn = turns(out, "selfplay")[-1]
        assert (turn["generation"], turn["stopped"]) == (generation, False)
        assert turn["num_games"] == num_games
    first = [turn for turn in turns(out, "selfplay") if turn["generation"] == 1][-1]
    assert first["num_recovered"] == len(kept)


@pytest.mark.soak
def test_a_role_that_dies_at_every_turn_ends_the_run_and_is_named(
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    fault = "publish.written:1:candidates/"
    done = run_command(command(out), fault=fault)
    assert done.returncode == 1
    assert f"role (export) died 5 times in a row, last with signal 9; see {out}" in (
        done.stderr
    )
    assert len(deaths(out, "export")) == 4
    assert {role: process_of(RunDirectory(out), role) for role in ROLES} == (
        dict.fromkeys(ROLES)
    )


@pytest.mark.slow
def test_a_role_that_refuses_ends_the_run_with_its_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = RunDirectory.create_or_resume(out)
    with run.lock("gate"):
        done = run_command(command(out))
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: folder ({out}")
    assert f"is in use by process {os.getpid()} on" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.soak
def test_a_model_that_comes_in_the_middle_of_a_generation_plays_on(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    """The learner trains on generation 1 while generation 2 never ends."""
    out = tmp_path / "run"
    # The learner cannot start with the first games, because min_rows is too high.
    more = ("store.limiter.samples_per_row=64", "learner.epoch_samples=96")
    waits = (*BUSY, *more, "store.min_rows=100000")
    done = run_command(train_command(out, 24, settings=waits))
    assert done.returncode == 1, done.stderr
    child = start(command(out, settings=(*ENDLESS, *more)))
    run = RunDirectory(out)
    wait_for(lambda: models_that_went_on(run))
    run.request_stop()
    child.communicate(timeout=900)
    assert child.returncode == 0
    recorded = models_that_went_on(run)
    (turn,) = [turn for turn in turns(out, "selfplay") if turn["generation"] == 2]
    # A model takes over no game if all games end before the model arrives.
    assert recorded <= set(turn["models"][1:])
    assert turn["models"] == sorted(turn["models"])
