"""Environment runs with roles in turns produce the same bytes for the same seed."""

import sys

import pytest

from tengen.run import RunDirectory
from tests.integration.runs import run_command

pytest.importorskip("gymnasium")


TASKS = dict.fromkeys(("mappo", "masac", "qmix"), "tests.team_environments:Signals")
TASKS["sac"] = "Pendulum-v1"
"""The tasks of agents that need several agents or numbers; others balance a pole."""
TEAMS = "teams"
"""PPO with opponents in a game of two teams."""


def train(out, agent, seed):
    task = TASKS.get(agent, "CartPole-v1")
    settings = []
    if agent == TEAMS:
        task, agent = "tests.team_environments:Duel", "ppo"
        settings = ["--set", "agent.actor.opponents=0.7"]
    words = [sys.executable, "-m", "tengen", "train", task, "--agent", agent]
    words += [*settings, "--seed", str(seed), "--out", str(out), "--threads", "1"]
    # Enough sequences for a step, a second call with batches that are sampled together,
    # and enough for a few models.
    calls = {"agent57": ["6k"], "sac": ["1200", "400"]}
    for frames in calls.get(agent, ["20k" if settings else "2k"]):
        done = run_command([*words, "--frames", frames])
        assert done.returncode == 0, done.stderr


def newest(out):
    """Returns the last model and checkpoint; the number of others depends on timing."""
    run = RunDirectory(out)
    found = []
    for folder in (run.models, run.checkpoints):
        number = folder.latest()
        assert number > 0
        (path,) = folder.entry(number).glob("*.safetensors")
        found.append(path.read_bytes())
    return found


@pytest.mark.parametrize(
    "agent",
    [
        "ppo",
        "sac",
        pytest.param(TEAMS, marks=pytest.mark.slow),
        pytest.param("vtrace", marks=pytest.mark.soak),
        pytest.param("dqn", marks=pytest.mark.soak),
        pytest.param("rnd", marks=pytest.mark.soak),
        pytest.param("agent57", marks=pytest.mark.soak),
        pytest.param("mappo", marks=pytest.mark.soak),
        pytest.param("qmix", marks=pytest.mark.soak),
        pytest.param("masac", marks=pytest.mark.soak),
    ],
)
def test_a_seed_gives_the_same_bytes(agent, tmp_path):
    for name in ("one", "again"):
        train(tmp_path / name, agent, 3)
    assert newest(tmp_path / "one") == newest(tmp_path / "again")


@pytest.mark.soak
def test_another_seed_gives_others(tmp_path):
    for name, seed in (("one", 3), ("other", 4)):
        train(tmp_path / name, "ppo", seed)
    assert newest(tmp_path / "one")[0] != newest(tmp_path / "other")[0]
