"""The single process of an environment run is killed, or cannot save at the end."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tengen.observe.curves.table import read_curve
from tengen.run import RunDirectory
from tests.integration.runs import (
    events,
    learned,
    process_of,
    run_command,
    start_command,
    turns,
    wait_for,
)

pytest.importorskip("gymnasium")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="processes are found there"
)
FRAMES = 12_000


def command(out: Path, agent: str, frames: int) -> list[str]:
    of_team = "tests.team_environments:Signals"
    task = of_team if agent in ("masac", "qmix") else "CartPole-v1"
    words = ["--agent", agent]
    if agent == "teams":
        task = "tests.team_environments:Duel"
        words = ["--agent", "ppo", "--set", "agent.actor.opponents=0.7"]
    words = ["train", task, *words, "--frames", str(frames)]
    return [sys.executable, "-m", "tengen", *words, "--threads", "1", "--out", str(out)]


def kill(out: Path, number: int = signal.SIGKILL) -> None:
    process = process_of(out, "learn")
    assert process is not None
    os.kill(process, number)


@pytest.mark.parametrize(
    "agent",
    [
        "ppo",
        *(
            pytest.param(one, marks=pytest.mark.soak)
            for one in ("dqn", "masac", "qmix", "teams")
        ),
    ],
)
def test_a_kill_costs_seconds_and_no_frame_of_the_budget(
    agent: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run = start_command(command(out, agent, FRAMES))
    wait_for(lambda: len(learned(out)) >= 3)
    kill(out)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 0, errors
    assert [death["how"] for death in events(out, "death")] == ["signal 9"]
    after = [turn for turn in learned(out) if turn["time_s"] > death_s(out)]
    steps = [turn["total_steps"] for turn in after]
    # The learner resumed from the last checkpoint, which the first turn wrote.
    assert steps[0] < learned(out)[2]["total_steps"] + after[0]["num_steps"]
    assert steps == sorted(steps)
    # The lost frames were repeated, so the call reaches its budget.
    num_rows = turns(out, "learn")[-1]["table"]["num_rows"]
    assert FRAMES <= num_rows < 1.5 * FRAMES
    found = [row["agent_steps"] for row in read_curve(RunDirectory(out))]
    assert found == sorted(set(found))
    done = run_command(command(out, agent, 2_000))
    assert done.returncode == 0, done.stderr
    assert turns(out, "learn")[-1]["table"]["num_rows"] >= num_rows + 2_000
    assert learned(out)[-1]["total_steps"] > steps[-1]


def death_s(out: Path) -> float:
    (death,) = events(out, "death")
    time_s: float = death["time_s"]
    return time_s


def test_a_stop_saves_every_step_or_is_an_error(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = start_command(command(out, "ppo", 10_000_000))
    wait_for(lambda: len(learned(out)) >= 3)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 130, errors
    before = learned(out)
    run = start_command(command(out, "ppo", 10_000_000))
    wait_for(lambda: len(learned(out)) >= len(before) + 3)
    # The stop wrote a checkpoint; the last one before it was that of the first turn.
    assert learned(out)[len(before)]["total_steps"] > before[-1]["total_steps"]
    shutil.rmtree(out / "checkpoints")
    (out / "checkpoints").touch()
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 1, errors
    assert "checkpoints" in errors
    assert "cannot be" in errors
    assert "Traceback" not in errors
