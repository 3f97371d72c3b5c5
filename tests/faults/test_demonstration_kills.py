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


@pytest.mark.parametrize(
    ("point", "count"),
    # The publications are those of the first episode, the list, their folder, the
    # second episode and the list.
    [*((point, 3) for point in POINTS)]
    + [(point, count) for point in ("written", "renamed") for count in (4, 5)],
)
def test_a_killed_person_keeps_each_recorded_episode(point, count, tmp_path):
    out = tmp_path / "demos"
    done = record(out, fault=f"publish.{point}:{count}:demos")
    assert done.returncode == -signal.SIGKILL, done.stderr
    num_kept = (count > 3) + (count != 4 and point in ("renamed", "done"))
    assert out.exists() == (num_kept > 0)
    if num_kept:
        demos = Demonstrations(out)
        lengths = [len(episode["reward"]) for episode in demos]
        assert (len(lengths), tuple(lengths)) == (num_kept, demos.contents.lengths)


WRITING = """
import sys
from pathlib import Path
import numpy as np
from tengen import envs
from tengen.evaluation import Recorder
from tengen.experience import write_demonstrations

def record(add):
    env = Recorder(envs.make("CartPole-v1", 1, 0), 3, add)
    env.reset()
    for choice in [0, 1] * 600:
        env.step(np.array([choice]))

spec = envs.env_spec("CartPole-v1")
write_demonstrations(Path(sys.argv[1]), spec, record, source="a rule")
"""


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_program_leaves_all_or_nothing(point, tmp_path):
    out = tmp_path / "demos"
    # Four files are published in the temporary folder first.
    fault = f"publish.{point}:{1 if point == 'created' else 5}:demos"
    done = run_command([sys.executable, "-c", WRITING, str(out)], fault=fault)
    assert done.returncode == -signal.SIGKILL, done.stderr
    is_there = point in ("renamed", "done")
    assert out.exists() == is_there
    if is_there:
        demos = Demonstrations(out)
        lengths = [len(episode["reward"]) for episode in demos]
        assert (len(lengths), tuple(lengths)) == (3, demos.contents.lengths)
    # What the killed process left is gone with the next recording.
    assert record(tmp_path / "more").returncode == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == ({"demos", "more"} if is_there else {"more"})


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
