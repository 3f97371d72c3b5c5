"""Processes are killed while demonstrations are written, or copied into a run."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from tengen.experience import Demonstrations
from tengen.roles import read_config
from tengen.run import RunDirectory
from tests.integration.runs import run_command

pytest.importorskip("gymnasium")

CARTPOLE = "CartPole-v1"
KEYS = "01" * 600
POINTS = ("created", "written", "synced", "renamed", "done")


def tengen(*words, fault=None):
    command = [sys.executable, "-m", "tengen", *map(str, words)]
    return run_command(command, fault=fault)


RECORDING = """
import io, sys
from tengen.cli import main
sys.stdin = io.StringIO({keys!r})
sys.exit(main(sys.argv[1:]))
"""


def record(out, num_episodes=3, fault=None):
    program = RECORDING.format(keys=KEYS)
    words = ["demos", "record", CARTPOLE, "--keys", "--episodes", num_episodes]
    words += ["--out", out]
    command = [sys.executable, "-c", program, *map(str, words)]
    return run_command(command, fault=fault)


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_recording_leaves_all_or_nothing(point: str, tmp_path: Path) -> None:
    out = tmp_path / "demos"
    done = record(out, fault=f"publish.{point}:1:demos")
    assert done.returncode == -signal.SIGKILL, done.stderr
    is_there = point in ("renamed", "done")
    assert out.exists() == is_there
    if not is_there:
        again = record(out)
        assert again.returncode == 0, again.stderr
    demos = Demonstrations(out)
    assert [len(episode["reward"]) for episode in demos] == list(demos.contents.lengths)
    # What the killed process left is gone with the next recording.
    assert record(tmp_path / "more").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demos", "more"]


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 3])
def test_a_learner_killed_while_it_copies_them_copies_the_rest(
    block: int, tmp_path: Path
) -> None:
    demos, out = tmp_path / "demos", tmp_path / "run"
    assert record(demos, 8).returncode == 0
    words = ["train", CARTPOLE, "--agent", "r2d3", "--demos", demos, "--frames", 0]
    words += ["--set", "agent.burn_in=4", "--set", "agent.unroll_length=8"]
    words += ["--set", "agent.period=4"]
    done = tengen(*words, "--out", out)
    assert done.returncode == 0, done.stderr
    learn = ["learn", out, "--once", "--threads", 1]
    killed = tengen(*learn, fault=f"demos.block:{block}")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = tengen(*learn)
    assert done.returncode == 0, done.stderr
    run = RunDirectory(out)
    steps = read_config(run).family.open_experience(run, None)
    try:
        num_items = steps.demos.num_inserts
        drawn = [steps.demos.sample_own(16) for _ in range(num_items)]
        seen = np.concatenate([batch.columns["observation"] for batch in drawn])
        lengths = Demonstrations(demos).contents.lengths
        # Every observation of the episodes is in an item, and each item is there once.
        assert num_items == len(np.unique(seen.reshape(len(seen), -1), axis=0))
        found = np.unique(seen.reshape(-1, 4), axis=0)
        made = [episode["observation"] for episode in Demonstrations(demos)]
        assert len(found) == sum(lengths) + len(lengths)
        np.testing.assert_array_equal(found, np.unique(np.concatenate(made), axis=0))
    finally:
        steps.close()
