"""Actors, inference and the learner are killed while all work concurrently."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.run import RunDirectory, service_folder
from tests.integration.runs import (
    events,
    process_of,
    run_command,
    start_command,
    turns,
    wait_for,
)

pytest.importorskip("gymnasium")

STEADY = "tests.environments:Steady"
TEAM, TEAM_AGENTS = "tests.team_environments:Signals", ("masac", "qmix")
SETTINGS = (
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
    "agent.actor.num_envs=4",
)


def task_of(agent: str) -> str:
    return TEAM if agent in TEAM_AGENTS else STEADY


def command(out: Path, agent: str, *extra: str, task: str | None = None) -> list[str]:
    task = task or task_of(agent)
    words = [sys.executable, "-m", "tengen", "train", task, "--agent", agent]
    words += ["--out", str(out), "--threads", "2", *extra]
    return words + [f"--set={setting}" for setting in SETTINGS]


def acted(out: Path) -> NDArray[np.int64]:
    """Returns the number of turns of each of the two actors."""
    return np.bincount([turn["actor"] for turn in turns(out, "actor")], minlength=2)


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "run"
    yield folder
    run = RunDirectory(folder)
    left = [service_folder(run, name) for name in ("store", "inference")]
    assert not any(path.exists() for path in left)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found there")
@pytest.mark.parametrize(
    "agent",
    [
        pytest.param("ppo", marks=pytest.mark.slow),
        pytest.param("dqn", marks=pytest.mark.soak),
        pytest.param("qmix", marks=pytest.mark.soak),
        pytest.param("masac", marks=pytest.mark.soak),
    ],
)
def test_learning_goes_on_whoever_is_killed(out: Path, agent: str) -> None:
    words = ("--actors", "2", "--frames", "10M")
    run = start_command(command(out, agent, *words))
    try:
        wait_for(lambda: len(turns(out, "learn")) >= 2 and turns(out, "actor"))
        for index in (0, 1):
            maps = Path(f"/proc/{process_of(out, 'actor', index)}/maps").read_text()
            assert "_core" in maps
            assert not any(name in maps for name in ("torch", "openvino"))
        for number, (role, index) in enumerate(
            [("actor", 1), ("inference", 0), ("actor", 0), ("learn", 0), ("actor", 1)]
        ):
            victim = process_of(out, role, index)
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            wait_for(lambda n=number: len(events(out, "death")) > n)
            wait_for(lambda: process_of(out, role, index) not in (None, victim))  # noqa: B023
            # The learner and the actors must continue after the kill.
            num_learned, num_acted = len(turns(out, "learn")), acted(out)
            wait_for(lambda: len(turns(out, "learn")) > num_learned)  # noqa: B023
            wait_for(lambda: sum(acted(out) - num_acted) > 2)  # noqa: B023
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=900)
        assert run.returncode == 130, errors
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
    deaths = events(out, "death")
    assert all(death["how"] == "signal 9" for death in deaths)
    # The learner's process also exports and gates, and a death names the role whose
    # turn was running.
    shared = {"export": "learn", "gate": "learn"}
    roles = [shared.get(death["role"], death["role"]) for death in deaths]
    assert roles == ["actor", "inference", "actor", "learn", "actor"]
    learned = turns(out, "learn")
    steps = [turn["total_steps"] for turn in learned if "total_steps" in turn]
    assert steps == sorted(steps)
    assert all(turn["lag_steps"] >= 0 for turn in learned if turn.get("num_steps"))

    # Another launcher resumes the run with the earlier steps.
    before = learned[-1]["table"]["num_rows"]
    assert before > 0
    done = run_command(
        command(out, agent, "--launch", "inline", "--frames", "2k", "--json")
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["num_rows"] >= before + 2000
    done = run_command(
        [
            *(sys.executable, "-m", "tengen", "eval", str(out), "--episodes", "3"),
            *("--task", task_of(agent)),
        ]
    )
    assert done.returncode == 0, done.stderr


def own(
    folder: Path, name: str, *extra: str, frames: str = "1M"
) -> subprocess.CompletedProcess[str]:
    """Trains an environment from ``tests/environments.py`` with two actor processes."""
    source = Path(__file__).parents[1] / "environments.py"
    (folder / "my_envs.py").write_text(source.read_text())
    words = [sys.executable, "-P", "-m", "tengen", "train", f"my_envs:{name}"]
    words += [
        "--agent",
        "ppo",
        "--launch",
        "local",
        "--actors",
        "2",
        "--frames",
        frames,
    ]
    words += ["--out", "run", *extra, *(f"--set={one}" for one in SETTINGS)]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900
    )


def test_a_run_goes_on_where_an_environment_raises_now_and_then(
    tmp_path: Path,
) -> None:
    done = own(tmp_path, "Stumbling", frames="2k")
    assert done.returncode == 0, done.stderr
    deaths = [
        (death["role"], death["how"]) for death in events(tmp_path / "run", "death")
    ]
    assert len(deaths) == 3
    for role, how in deaths:
        assert role == "actor"
        assert 'environment ("my_envs:Stumbling") must not raise, but copy ' in how
        assert "raised ValueError: step 15 of this environment always fails" in how
    for path in (tmp_path / "run" / "logs").glob("*.log"):
        assert "nanobind: leaked" not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Hanging", "environment (my_envs:Hanging) hangs"),
        pytest.param(
            "Spinning",
            "environment (my_envs:Spinning) hangs",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            "Raising",
            'environment ("my_envs:Raising") must not raise, but copy 0 raised '
            "ValueError: step 15",
            marks=pytest.mark.soak,
        ),
        pytest.param("Crashing", "signal 11", marks=pytest.mark.soak),
        pytest.param("Exiting", "exit code 3", marks=pytest.mark.soak),
        pytest.param(
            "NotFinite",
            "observation (nan) of my_envs:NotFinite (copy 0) must be finite",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_an_environment_that_always_fails_is_started_again_and_then_named(
    name: str, says: str, tmp_path: Path
) -> None:
    done = own(tmp_path, name, "--set=agent.actor.step_timeout_s=1")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "role (actor) died 5 times in a row" in line
    assert says in line
    assert f"role (actor) died, {says}" in done.stdout
    if name == "Exiting":
        assert ", in code of its task or of a library; see " in line
    if name == "Crashing":
        logs = [p.read_text() for p in (tmp_path / "run" / "logs").glob("actor*.log")]
        assert any("my_envs.py" in log and "in step" in log for log in logs)
