"""The commands of MLPerf's minigo, from TensorFlow's files to the result's log."""

import json
import sys

import pytest

from tengen.models import resolve_model
from tests.integration.runs import run_command
from tests.unit.minigo.golden import GOLDEN, PREFIX

SETTINGS = (
    "net.num_blocks=2",
    "net.num_channels=8",
    "net.fc_width=6",
    "agent.iterations=2",
    "agent.actor.games_per_generation=8",
    "agent.actor.full_simulations=8",
    "agent.actor.cheap_simulations=2",
    "agent.target.opponent=random",
    "agent.target.num_games=16",
    "agent.target.confirming_games=4",
    "agent.target.num_simulations=4",
    "store.min_games=2",
    "store.share=1",
    "learner.batch_size=2",
    "inference.backend=openvino",
    "inference.precision=fp32",
)


def tengen(*words):
    """Runs a command, which must succeed; returns its output."""
    done = run_command([sys.executable, "-m", "tengen", *map(str, words)])
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_run_begins_with_the_published_files(tmp_path):
    model, rows, run = tmp_path / "model", tmp_path / "rows", tmp_path / "run"
    tengen("data", "import-minigo", "--checkpoint", PREFIX, "--out", model)
    tengen("data", "import-minigo", "--examples", GOLDEN / "selfplay", "--out", rows)
    words = ["train", "go/5", "--recipe", "mlperf_minigo_small", "--out", run]
    for setting in (
        *SETTINGS,
        f"learner.initial_model={model}",
        f"store.imported={rows}",
        "store.num_generations=2",
    ):
        words += ["--set", setting]
    tengen(*words)

    folder = run / "eval" / "target"
    clock = json.loads((folder / "clock.json").read_text())
    first = resolve_model(f"{run}@1").meta
    assert clock["init_ended_at"] <= clock["clock_at"] < first.made_at
    # Step counts continue from the imported model; imported games are used first.
    assert first.num_steps > 12345
    passes = [
        json.loads(line)
        for line in (folder / "generations.jsonl").read_text().splitlines()
    ]
    assert [entry["model"] for entry in passes] == [1, 2]
    assert passes[0]["generation"] < 0 <= passes[1]["generation"]
    result = json.loads((folder / "result.json").read_text())
    assert result["num_games"] == 16

    tengen("mllog", run)
    told = [
        json.loads(line.split(" ", 1)[1])
        for line in (run / "eval" / "result_0.txt").read_text().splitlines()
    ]
    keys = [entry["key"] for entry in told]
    for key in ("init_start", "init_stop", "run_start", "run_stop"):
        assert keys.count(key) == 1
    times = [entry["time_ms"] for entry in told]
    assert times == sorted(times)
    assert times[keys.index("run_start")] == round(1000 * clock["clock_at"])
