"""Actors, inference and the learner are killed together, during startup, and often."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_counts
from tests.faults.test_actor_kills import acted, command
from tests.integration.runs import events, process_of, run_command, turns, wait_for

pytest.importorskip("gymnasium")

Start = Callable[[list[str]], subprocess.Popen[str]]

SOAK_S = 120.0
KILL_EVERY_S = 2.0
SOAK_ACTORS = 4


def kill(out: Path, *victims: tuple[str, int]) -> None:
    """Kills running processes together."""
    found = [process_of(out, role, index) for role, index in victims]
    assert None not in found
    for number in found:
        assert number is not None
        os.kill(number, signal.SIGKILL)


def work_goes_on(out: Path) -> None:
    """Waits until the learner and the actors have finished new turns."""
    num_learned, num_acted = len(turns(out, "learn")), acted(out).sum()
    wait_for(lambda: len(turns(out, "learn")) > num_learned)
    wait_for(lambda: acted(out).sum() > num_acted + 2)


def end(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 130, errors


@pytest.mark.soak
def test_kills_at_once_in_a_start_and_in_a_checkpoint(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    # Each learner process dies while it writes its third checkpoint.
    monkeypatch.setenv("TENGEN_FAULT", "publish.written:3:checkpoints/")
    run = start(command(out, "ppo", "--actors", "2", "--frames", "10M"))

    def deaths(role: str) -> int:
        return sum(death["role"] == role for death in events(out, "death"))

    wait_for(lambda: deaths("learn") >= 2)
    wait_for(lambda: acted(out).min() > 0)
    kill(out, ("inference", 0), ("actor", 0))
    wait_for(lambda: deaths("inference") == 1)
    wait_for(lambda: deaths("actor") == 1)
    work_goes_on(out)
    victim = process_of(out, "actor", 1)
    kill(out, ("actor", 1))
    wait_for(lambda: process_of(out, "actor", 1) not in (None, victim))
    kill(out, ("actor", 1))  # during its startup
    wait_for(lambda: deaths("actor") == 3)
    work_goes_on(out)
    end(run)
    steps = [one["total_steps"] for one in turns(out, "learn") if one.get("num_steps")]
    assert steps == sorted(steps)
    assert steps[-1] > 0


@pytest.mark.soak
def test_learning_goes_on_through_two_minutes_of_kills(
    tmp_path: Path, start: Start
) -> None:
    out = tmp_path / "run"
    words = ("--actors", str(SOAK_ACTORS), "--frames", "100M")
    run = start(command(out, "ppo", *words, task="CartPole-v1"))
    wait_for(lambda: len(turns(out, "learn")) >= 2 and acted(out).sum() > 2)
    draws = random.Random(0)
    begin_s = time.monotonic()
    others = [(SOAK_S / 3, "inference"), (2 * SOAK_S / 3, "learn")]
    num_kills = 0
    while (elapsed_s := time.monotonic() - begin_s) < SOAK_S:
        assert run.poll() is None, run.communicate()[1]
        if others and elapsed_s >= others[0][0]:
            kill(out, (others.pop(0)[1], 0))
            num_kills += 1
        living = [
            number
            for index in range(SOAK_ACTORS)
            if (number := process_of(out, "actor", index)) is not None
        ]
        if living:
            os.kill(draws.choice(living), signal.SIGKILL)
            num_kills += 1
        time.sleep(KILL_EVERY_S)
    during = len(turns(out, "learn"))
    work_goes_on(out)
    frames = read_actor_counts(RunDirectory(out))["num_rows"]
    wait_for(lambda: turns(out, "learn")[-1]["table"]["num_rows"] >= frames)
    # The agent must score clearly more than a random policy, whose return is about 22.
    wait_for(lambda: (turns(out, "actor")[-1]["mean_return"] or 0) > 60)
    end(run)
    dead = [death["role"] for death in events(out, "death")]
    assert dead.count("inference") == dead.count("learn") == 1
    done = run_command(
        [sys.executable, "-m", "tengen", "eval", str(out), "--episodes", "20", "--json"]
    )
    assert done.returncode == 0, done.stderr
    print(
        f"kills {num_kills}, deaths {len(dead)}, learner turns told {during}, "
        f"frames {frames}, eval {json.loads(done.stdout)['mean_return']}"
    )
