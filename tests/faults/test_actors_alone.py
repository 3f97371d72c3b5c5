"""Standalone role processes of an environment run, without a runner."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.observe import read_events
from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_counts
from tests.faults.test_actor_kills import STEADY, command
from tests.integration.runs import run_command, wait_for

pytest.importorskip("gymnasium")

ROLES = (
    ("learn",),
    ("export",),
    ("gate",),
    ("inference",),
    ("actor",),
    ("actor", "--index=1"),
)


@pytest.mark.slow
def test_roles_in_terminals_of_their_own_make_models_that_know_their_frames(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    out = tmp_path / "run"
    done = run_command(command(out, "ppo", "--actors", "2", "--frames", "0"))
    assert done.returncode == 0, done.stderr
    tengen = [sys.executable, "-m", "tengen"]
    roles = [
        start([*tengen, role, str(out), "--threads", "1", "--task", STEADY, *extra])
        for role, *extra in ROLES
    ]
    run = RunDirectory(out)

    def frames_of_model() -> int:
        """Returns the number of frames that the newest model was trained on."""
        number = run.models.latest()
        if number is None:
            return 0
        meta = json.loads((run.models.entry(number) / "meta.json").read_text())
        return int(meta["origin"]["num_rows"])

    wait_for(lambda: frames_of_model() > 2000)
    assert run_command([*tengen, "stop", str(out)]).returncode == 0
    for role in roles:
        _, errors = role.communicate(timeout=900)
        assert (role.returncode, errors) == (0, "")
    # The model must record its frames although no runner reports them to the learner.
    assert 2000 < frames_of_model() <= read_actor_counts(run)["num_rows"]
    # Each actor's events have its index, so that curves can average both actors.
    files = run.events.glob("actor-command-*.jsonl")
    acted = [e for path in files for e in read_events(path) if e["kind"] == "turn"]
    assert {event["index"] for event in acted} == {0, 1}
    (run.path / "STOP").unlink(missing_ok=True)
    words = ["--task", STEADY, "--episodes", "3", "--json"]
    done = run_command([*tengen, "eval", str(out), *words])
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["returns"]) == 3
