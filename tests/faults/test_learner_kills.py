"""A run with two learners, whose follower and leader are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen.learners.checkpoint import read_model
from tengen.run import RunDirectory, service_folder
from tests.faults.role_processes import SETTINGS as GAME_SETTINGS
from tests.faults.role_processes import check_games, check_learner, check_models
from tests.faults.test_actor_kills import SETTINGS, STEADY
from tests.integration.runs import (
    events,
    learned,
    process_of,
    run_command,
    start_command,
    train_command,
    wait_for,
)

TWO = "launch.roles.learn.count=2"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self").exists(), reason="processes are found there"
    ),
]


def environment(out: Path, *extra: str) -> list[str]:
    pytest.importorskip("gymnasium")
    command = train_command(out, 0, *extra, settings=(*SETTINGS, TWO))
    # Replaces the task and its budget in games.
    place = command.index("--games")
    command[place : place + 2] = ["--agent", "vtrace", "--threads", "2"]
    command[command.index("tictactoe")] = STEADY
    return command


def game(out: Path, *extra: str) -> list[str]:
    return train_command(out, 10**6, *extra, settings=(*GAME_SETTINGS, TWO))


def two_learn(out: Path) -> Callable[[], bool]:
    """Returns a function that tells if two learners have made steps since this call."""
    before = len(learned(out))
    return lambda: any(turn["num_learners"] == 2 for turn in learned(out)[before:])


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "run"
    yield folder
    left = service_folder(RunDirectory(folder), "learners")
    assert not left.exists()


@pytest.mark.parametrize(
    "command", [environment, pytest.param(game, marks=pytest.mark.soak)]
)
def test_a_learner_that_is_killed_ends_a_step_and_not_the_run(
    out: Path, command: Callable[..., list[str]]
) -> None:
    run = start_command(command(out, "--launch", "local"))
    try:
        wait_for(two_learn(out))
        for number, (role, index) in enumerate(
            [("follow", 1), ("learn", 0), ("follow", 1)]
        ):
            victim = process_of(out, role, index)
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda n=number: len(events(out, "death")) > n)
            wait_for(two_learn(out))
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=900)
        assert (run.returncode, errors) == (130, "")
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    # The reported role is not checked, because the leader's process has several roles.
    assert [death["how"] for death in events(out, "death")] == ["signal 9"] * 3
    steps = [turn["total_steps"] for turn in learned(out)]
    assert steps == sorted(steps)
    directory = RunDirectory(out)
    newest = directory.checkpoints.latest()
    assert newest is not None
    # The batch size does not depend on the number of learners.
    model = read_model(directory.checkpoints.entry(newest))
    batch = 32 if command is game else 16
    assert model.num_samples == batch * model.num_steps
    if command is game:
        assert check_games(directory, {}) > 0
        assert check_learner(directory) > 0
        assert check_models(directory) > 0


@pytest.mark.soak
def test_a_budget_in_frames_is_kept_with_two_learners(out: Path) -> None:
    done = run_command(environment(out, "--launch", "local", "--frames", "20000"))
    assert (done.returncode, done.stderr) == (0, "")
    assert events(out, "death") == []
    assert learned(out)[-1]["num_learners"] == 2
    assert learned(out)[-1]["num_lost_learners"] == 0
    directory = RunDirectory(out)
    newest = directory.checkpoints.latest()
    assert newest is not None
    model = read_model(directory.checkpoints.entry(newest))
    # The learner used all items of the queue, except a last incomplete batch.
    table = model.extra["table"]
    assert 0 <= table["num_seen"] - model.num_samples < 16
