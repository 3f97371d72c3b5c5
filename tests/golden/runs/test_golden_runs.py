"""Runs of earlier versions open, choose the same moves and resume.

The runs cannot be regenerated, because current code writes a newer schema. ``schema_1``
has one generation of 48 games of tic-tac-toe, without files that a run can recreate.
``schema_1.json`` has the moves that its newest model chose with 64 simulations,
regenerated when searches began to use decisive moves.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import tengen
from tengen.agents.alphazero import AlphaZero
from tengen.cli import main
from tengen.learners.checkpoint import read_model
from tengen.models import load_model
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.run import SCHEMA, RunDirectory
from tests.integration.runs import events, sealed

HERE = Path(__file__).parent


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    with tarfile.open(HERE / "schema_1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return RunDirectory.open(tmp_path / "schema_1")


def test_its_settings_are_the_agents(run: RunDirectory) -> None:
    config = read_config(run)
    assert isinstance(config.agent, AlphaZero)
    assert (config.task, config.seed, config.net.num_channels) == ("tictactoe", 3, 8)
    actor, rating = config.agent.actor, config.agent.rating
    assert (actor.games_per_generation, actor.full_simulations) == (48, 8)
    assert (rating.time_share, rating.final_games) == (0.0, 0)
    assert config.agent.loss.search_value_share == 0.3
    assert config.agent.gate.kind == "accept_all"


def test_status_tells_of_it(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(run.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["latest_model"], found["roles"]) == (
        "tictactoe",
        1,
        [],
    )
    progress = found["progress"]
    told = (progress["generation"], progress["num_games"], progress["num_steps"])
    assert told == (1, 48, 15)


def test_it_plays_as_then(run: RunDirectory) -> None:
    wanted = json.loads((HERE / "schema_1.json").read_text())
    with tengen.load(run.path) as player:
        found = [
            player.choose(moves, simulations=64, seed=0)
            for moves in wanted["positions"]
        ]
    assert found == wanted["moves"]


def test_its_checkpoint_has_the_weights_of_its_model(run: RunDirectory) -> None:
    saved = read_model(run.checkpoints.entry(1))
    model = load_model(run.models.entry(1), "tictactoe")
    assert (saved.net, saved.signature) == (model.meta.net, model.meta.signature)
    assert (saved.num_steps, saved.num_samples) == (15, 480)
    weights = safetensors.numpy.load_file(model.path / "weights.safetensors")
    assert saved.tensors.keys() == weights.keys()
    for name, tensor in saved.tensors.items():
        np.testing.assert_array_equal(tensor, weights[name], err_msg=name)


def test_it_goes_on(run: RunDirectory) -> None:
    before = sealed(run.path)
    report = train_task("tictactoe", out=run.path, games=48, threads=1)
    assert (report["reason"], report["num_games"]) == ("budget", 96)
    assert run.models.numbers() == [0, 1, 2]
    after = sealed(run.path)
    assert after.keys() == {1, 2}
    assert after[1] == before[1]
    learned = [turn for turn in events(run.path, "turn") if turn["role"] == "learn"]
    (turn,) = learned[2:]
    assert turn["total_steps"] == 15 + turn["num_steps"]
    assert turn["num_steps"] > 0
    assert turn["table"]["num_games"] == 96
    # The run is rewritten in the current schema, with its settings unchanged.
    content = run.read_run()
    assert content["schema"] == SCHEMA
    assert content["config"]["agent"]["actor"]["games_per_generation"] == 48
