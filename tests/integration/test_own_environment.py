"""The real commands train, evaluate and reject a user's own environment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.observe import read_events

pytest.importorskip("gymnasium")

ENVIRONMENTS = Path(__file__).parents[1] / "environments.py"


@pytest.fixture
def folder(tmp_path):
    """A working directory with ``my_envs.py`` that is not in ``sys.path``."""
    (tmp_path / "my_envs.py").write_text(ENVIRONMENTS.read_text())
    return tmp_path


def tengen(cwd, *words):
    command = [sys.executable, "-P", "-m", "tengen", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=900)


def report_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_an_own_environment_is_trained_resumed_and_scored(folder):
    words = ("train", "my_envs:Catch", "--agent", "ppo", "--frames", "2k", "--json")
    first = report_of(tengen(folder, *words))
    assert first["out"] == "runs/my_envs_Catch"
    assert -1 <= first["mean_return"] <= 1
    done = tengen(folder, *words)
    assert report_of(done)["num_episodes"] > first["num_episodes"]
    *_, returns, farewell, _ = done.stdout.splitlines()
    assert returns.startswith("mean return of the last 100 training episodes: ")
    assert farewell == (
        "measure its return: tengen eval runs/my_envs_Catch --task my_envs:Catch "
        "--episodes 100"
    )

    # The printed command works; without --task it would not import the user's module.
    words = ("eval", "runs/my_envs_Catch", "--episodes", 20, "--json")
    done = tengen(folder, *words)
    assert done.returncode == 2
    assert done.stderr.startswith("tengen: task (my_envs:Catch) of runs/my_envs_Catch")
    report = report_of(tengen(folder, *words, "--task", "my_envs:Catch"))
    assert len(report["returns"]) == 20
    assert set(report["returns"]) <= {-1.0, 1.0}
    assert report["lengths"] == [9] * 20


def test_sac_learns_by_numbers_in_units_of_their_own(folder):
    """The critics need statistics of their own, because they also get the action."""
    words = ["train", "my_envs:Reach", "--agent", "sac", "--out", "run", "--json"]
    words += ["--set", "net.standardizes=true", "--set", "net.num_units=16"]
    words += ["--set", "store.min_items=64", "--set", "learner.batch_size=16"]
    words += ["--set", "store.samples_per_item=16"]
    # The second call resumes from a checkpoint with the critics' statistics.
    steps = [
        report_of(tengen(folder, *words, "--frames", 200))["num_steps"]
        for _ in range(2)
    ]
    assert 0 < steps[0] < steps[1]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "Raising",
            'environment ("my_envs:Raising") must not raise, but copy 0 raised '
            "ValueError: step 15 of this environment always fails; correct it",
        ),
        pytest.param(
            "NotFinite",
            "observation (nan) of my_envs:NotFinite (copy 0) must be finite; correct "
            "the environment",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_an_own_environment_that_fails_ends_the_run_with_one_line(folder, name, line):
    done = tengen(folder, "train", f"my_envs:{name}", "--agent", "ppo", "--out", "run")
    assert done.returncode == 1
    assert done.stderr == f"tengen: {line}\n"
    assert "Traceback" not in done.stdout
    # The role is not restarted, because the same step would fail again.
    events = [
        event["kind"]
        for path in folder.glob("run/events/train-*.jsonl")
        for event in read_events(path)
    ]
    assert "death" not in events


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "class Mind: pass",
            'task (my_env:Mine) must name a class of my_env; did you mean "Mind"?',
        ),
        (
            "import gymnasium\nclass Mine(gymnasium.Env):\n"
            "    def __init__(self): raise OSError('no screen')",
            'environment ("my_env:Mine") must not raise when it is made, but raised '
            "OSError: no screen; correct it",
        ),
        (
            "class Mine:\n    def reset(self): pass\n    def step(self, action): pass",
            'environment ("my_env:Mine") must be a gymnasium.Env, not Mine; derive it '
            "from that class",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    tmp_path, text, line
):
    (tmp_path / "my_env.py").write_text(text)
    done = tengen(tmp_path, "train", "my_env:Mine", "--agent", "ppo")
    assert done.returncode == 2
    assert done.stderr == f"tengen: {line}\n"
    assert not (tmp_path / "runs").exists()
