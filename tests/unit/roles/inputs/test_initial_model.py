"""A run that begins with the weights of a model."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tengen.cli import main
from tengen.errors import UsageError
from tengen.learners import SgdConfig
from tengen.learners.checkpoint import SavedModel, read_model
from tengen.nets import MlpConfig, ResNetConfig
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles.config import RunConfig, read_config
from tengen.roles.config.run_file import write_config
from tengen.roles.inputs import checked_initial_model, fitting_model
from tengen.roles.judging.gate import GateRole
from tengen.roles.learning.export import ExportRole
from tengen.roles.learning.learn import LearnRole
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory
from tests.refusals import refused

SMALL = ResNetConfig(num_blocks=2, num_channels=8)


def config_of(net: ResNetConfig = SMALL, **learner: Any) -> RunConfig:
    config = make_config("tictactoe", None, None)
    assert not config.agent.stages
    return dataclasses.replace(
        config,
        net=net,
        inference=dataclasses.replace(
            config.inference, backend="torch", precision="fp32", batch_shape="fixed"
        ),
        learner=dataclasses.replace(config.learner, **learner),
    )


def begun(config: RunConfig, folder: Path) -> LearnRole:
    run = RunDirectory.create_or_resume(folder)
    write_config(run, config)
    return LearnRole(config, run, RoleContext(num_threads=1))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A run of one model, random but of another seed."""
    folder = tmp_path / "source"
    config = dataclasses.replace(config_of(), seed=5)
    run = RunDirectory.create_or_resume(folder)
    write_config(run, config)
    for role_class in (LearnRole, ExportRole, GateRole):
        role = role_class(config, run, RoleContext(num_threads=1))
        role.turn()
        role.close()
    assert run.models.latest() == 0
    return folder


def first_checkpoint(config: RunConfig, folder: Path) -> SavedModel:
    """What a new run saves before it learns."""
    role = begun(config, folder)
    role.turn()
    role.close()
    return read_model(RunDirectory(folder).checkpoints.entry(0))


def test_a_new_run_has_the_weights_of_the_model(source: Path, tmp_path: Path) -> None:
    other = dataclasses.replace(config_of(), seed=5)
    wanted = first_checkpoint(other, tmp_path / "same-seed").tensors
    for word in (str(source), f"{source}@0", str(source / "models" / "000000")):
        folder = tmp_path / f"run-{len(word)}"
        found = first_checkpoint(config_of(initial_model=word), folder).tensors
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)
        role = begun(config_of(), folder)
        assert role._learner.net.stem.weight.requires_grad
        role.close()
    found = first_checkpoint(config_of(), tmp_path / "without").tensors
    assert not np.array_equal(found["stem.weight"], wanted["stem.weight"])


def test_a_larger_network_grows_from_it(source: Path, tmp_path: Path) -> None:
    larger = ResNetConfig(num_blocks=3, num_channels=16)
    small = begun(config_of(initial_model=str(source)), tmp_path / "small")
    large = begun(config_of(larger, initial_model=str(source)), tmp_path / "large")
    planes = torch.randn(4, 3, 3, 3)
    planes[:, 0] = 1.0
    answers = []
    for role in (small, large):
        answers.append(role._learner.net.eval()(planes))
        role.close()
    for a, b in zip(*answers, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_run_begins_with_the_weights_of_a_smaller_board(tmp_path: Path) -> None:
    net = ResNetConfig(num_blocks=2, num_channels=8, auxiliary=True)
    small = dataclasses.replace(config_of(net), task="go/5", seed=5)
    source = tmp_path / "source"
    run = RunDirectory.create_or_resume(source)
    write_config(run, small)
    for role_class in (LearnRole, ExportRole, GateRole):
        role = role_class(small, run, RoleContext(num_threads=1))
        role.turn()
        role.close()
    config = dataclasses.replace(config_of(net, initial_model=str(source)), task="go/7")
    checked_initial_model(config, RunDirectory(tmp_path / "out"))
    found = first_checkpoint(config, tmp_path / "out").tensors
    wanted = read_model(run.checkpoints.entry(0)).tensors
    for name in ("stem.weight", "auxiliary_heads.ownership.weight"):
        assert np.array_equal(found[name], wanted[name])


def test_rates_go_on_from_the_steps_behind_the_model(
    source: Path, tmp_path: Path
) -> None:
    path = source / "models" / "000000" / "meta.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "num_steps": 7}))
    rates = SgdConfig(rates=(0.5, 0.25), boundaries=(6,))
    for optimizer, num_steps in ((rates, 7), (SgdConfig(), 0)):
        config = config_of(initial_model=str(source), optimizer=optimizer)
        folder = tmp_path / f"run-{num_steps}"
        assert first_checkpoint(config, folder).num_steps == num_steps
        role = begun(config, folder)
        assert role._learner.optimizer.num_steps == num_steps
        role.close()


def test_a_model_that_is_gone_is_one_line(tmp_path: Path) -> None:
    with refused(UsageError, "initial_model (nowhere)"):
        begun(config_of(initial_model="nowhere"), tmp_path / "a")


def made(
    out: Path, source: Path | str, *settings: str, task: str = "tictactoe"
) -> RunDirectory:
    """Makes a run that begins with a model, and starts nothing."""
    words = ("agent.stages=[]", "net.num_blocks=2", "net.num_channels=8", *settings)
    train_task(
        task,
        games=0,
        out=out,
        threads=1,
        settings=[*words, f"learner.initial_model={source}"],
    )
    return RunDirectory(out)


@pytest.mark.parametrize("word", ["source", "source@0", "source/models/000000"])
def test_a_run_keeps_the_full_path_of_its_model(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = made(tmp_path / "out", word)
    monkeypatch.chdir("/")
    kept = read_config(run)
    assert kept.learner.initial_model == str(source / "models" / "000000")
    LearnRole(kept, run, RoleContext(num_threads=1)).close()


def test_a_run_that_has_learned_goes_on_without_its_model(
    source: Path, tmp_path: Path
) -> None:
    run = made(tmp_path / "out", source)
    source.rename(tmp_path / "elsewhere")
    with refused(UsageError, "cannot be used"):
        train_task("tictactoe", games=0, out=run.path)
    (tmp_path / "elsewhere").rename(source)
    role = LearnRole(read_config(run), run, RoleContext(num_threads=1))
    role.turn()
    role.close()
    source.rename(tmp_path / "elsewhere")
    train_task("tictactoe", games=0, out=run.path)
    LearnRole(read_config(run), run, RoleContext(num_threads=1)).close()


@pytest.mark.parametrize(
    ("task", "name", "settings", "message"),
    [
        ("tictactoe", "nowhere", (), "cannot be used: model (.*) must be a run"),
        ("tictactoe", "empty", (), "cannot be used: run .* no published model yet"),
        (
            "connect4",
            "source",
            (),
            "must be a model with the shapes of connect4, not one of tictactoe with "
            "num_planes 3 instead of 4, height 3 instead of 6, .*; choose another",
        ),
        (
            "tictactoe",
            "source",
            ("net.head_channels=8",),
            "must have the run's own network, or one that can grow into it; set "
            ".*net.head_channels=32.* as in that model",
        ),
        ("CartPole-v1", "source", (), "must be a model with the shapes of CartPole-v1"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_anything_is_made(
    source: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    task: str,
    name: str,
    settings: tuple[str, ...],
    message: str,
) -> None:
    write_config(RunDirectory.create_or_resume(tmp_path / "empty"), config_of())
    out = tmp_path / "out"
    budget = ["--minutes", "1"] if task == "CartPole-v1" else ["--games", "0"]
    words = [f"learner.initial_model={tmp_path / name}", *settings]
    if task != "CartPole-v1":
        words += ["agent.stages=[]", "net.num_blocks=2", "net.num_channels=8"]
    arguments = ["train", task, *budget, "--out", str(out)]
    assert main([*arguments, *(f"--set={word}" for word in words)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(rf"learner.initial_model \(.*{name}\) {message}", line), line
    assert not out.exists()


def test_a_vector_network_grows_from_none(tmp_path: Path) -> None:
    config = make_config("CartPole-v1", None, None)
    run = RunDirectory.create_or_resume(tmp_path / "source")
    write_config(run, config)
    for role_class in (LearnRole, ExportRole, GateRole):
        role = role_class(config, run, RoleContext(num_threads=1))
        role.turn()
        role.close()
    learner = dataclasses.replace(config.learner, initial_model=str(run.path))
    other = dataclasses.replace(config, learner=learner)
    wanted = config.agent.signature(config.task)
    assert fitting_model(other, wanted).path.name == "000000"
    wider = dataclasses.replace(other, net=MlpConfig(num_units=99))
    with refused(UsageError, "own network"):
        fitting_model(wider, wanted)


def test_a_bundled_player_keeps_its_name(tmp_path: Path) -> None:
    net = ResNetConfig(num_blocks=2, num_channels=16)
    config = config_of(net, initial_model="bundled:tictactoe")
    run = RunDirectory.create_or_resume(tmp_path / "run")
    checked = checked_initial_model(config, run)
    assert checked.learner.initial_model == "bundled:tictactoe"
    # The bare name does too, wherever the command is given again.
    config = config_of(net, initial_model="tictactoe")
    checked = checked_initial_model(config, run)
    assert checked.learner.initial_model == "bundled:tictactoe"
