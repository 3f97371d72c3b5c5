from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen import launch
from tengen.cli import main
from tengen.errors import RunError, UsageError
from tengen.inference import Choice, InferenceConfig
from tengen.learners import LearnerConfig
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles import RoleContext, RunConfig, make_role, write_config
from tengen.roles.config import read_config
from tengen.roles.config.run_file import record_inference
from tengen.roles.devices import (
    check_devices,
    learner_device,
    move_run,
    possible_inference,
    with_devices,
)
from tengen.run import RunDirectory
from tests.refusals import refused

CHOSEN = InferenceConfig(
    devices="cpu", backend="openvino", precision="bf16", batch_shape="dynamic"
)


@pytest.fixture(autouse=True)
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: 2)


def config_with(**parts: object) -> RunConfig:
    return dataclasses.replace(make_config("tictactoe", None, None), **parts)


def test_inference_takes_all_and_the_learner_the_first() -> None:
    placed = with_devices(config_with(), "cuda:1,cuda:0")
    assert placed.inference.devices == "cuda:1,cuda:0"
    assert placed.learner.device == "cuda:1"
    assert learner_device(placed) == "cuda:1"
    assert with_devices(placed, None) == placed


def test_a_learner_follows_inference_unless_told() -> None:
    assert learner_device(config_with()) == "cuda:0"
    on_second = InferenceConfig(devices="cuda:1")
    assert learner_device(config_with(inference=on_second)) == "cuda:1"
    told = config_with(inference=on_second, learner=LearnerConfig(device="cpu"))
    assert learner_device(told) == "cpu"


@pytest.mark.parametrize("devices", ["auto", "gpu", "cuda:7"])
def test_other_devices_are_refused(devices: str) -> None:
    with refused(UsageError, f"devices ({devices})"):
        with_devices(config_with(), devices)


def test_a_learner_has_one_device() -> None:
    with refused(UsageError, "device (cuda:0,cuda:1)"):
        LearnerConfig(device="cuda:0,cuda:1")


def test_a_run_whose_gpu_is_gone_is_refused_by_field() -> None:
    with refused(UsageError, "inference.devices (cuda:5)"):
        check_devices(config_with(inference=InferenceConfig(devices="cuda:5")))
    with refused(UsageError, "learner.device (cuda:2)"):
        check_devices(config_with(learner=LearnerConfig(device="cuda:2")))
    check_devices(config_with())


def test_roles_of_one_machine_are_given_the_gpus_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["launch.roles.learn.num_gpus=1", "launch.roles.selfplay.num_gpus=1"]
    check_devices(override(config_with(), given))
    several = [*given, "launch.roles.selfplay.count=2"]
    for name in ("inline", "local"):
        words = ["train", "tictactoe", "--launch", name, "--games", "10"]
        words += ["--out", str(tmp_path / "run")]
        words += [word for one in several for word in ("--set", one)]
        assert main(words) == 2
        line = (
            "tengen: launch.roles.learn.num_gpus and launch.roles.selfplay.num_gpus "
            "(3) must be at most 2, the GPUs that torch finds here; set "
            "launch.roles.learn.num_gpus=0, or use --launch ray on a cluster with "
            "GPUs\n"
        )
        assert capsys.readouterr().err == line
    assert not (tmp_path / "run").exists()


def test_a_run_that_moves_chooses_again(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config_with(inference=CHOSEN))
    # Not measured: what the user said stays.
    config = read_config(run)
    assert move_run(run, config, "cuda:0").inference == dataclasses.replace(
        CHOSEN, devices="cuda:0"
    )
    config = record_inference(
        run, Choice(CHOSEN, "1", True, {}), InferenceConfig(), config.net
    )
    assert move_run(run, config, "cpu") == with_devices(config, "cpu")
    assert move_run(run, config, None) == config
    moved = move_run(run, config, "cuda:0")
    assert moved.inference == InferenceConfig(devices="cuda:0")
    assert moved.learner.device == "cuda:0"


@pytest.mark.parametrize("words", [["--devices", "cuda:4"], ["--devices", "gpu"]])
def test_train_refuses_before_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    out = tmp_path / "run"
    assert main(["train", "tictactoe", "--out", str(out), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tengen: devices ({words[1]}) ")
    assert error.count("\n") == 1
    assert not out.exists()


class Elsewhere(launch.Launcher):
    """A cluster's: stands for all that comes once the host of the command agrees."""

    package = "json"

    @classmethod
    def fit(cls, config: RunConfig, *, keeps_count: bool) -> RunConfig:
        devices = f"{config.inference.devices}, {config.learner.device}"
        raise RunError(f"on a cluster: {devices}")


@pytest.mark.parametrize(
    "words",
    [
        ["--devices", "cuda:4"],
        ["--set", "inference.devices=cuda:4", "--set", "learner.device=cuda:4"],
    ],
)
def test_a_gpu_of_a_cluster_is_not_looked_for_on_the_commands_host(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.setitem(launch.LAUNCHERS, "ray", f"{__name__}:Elsewhere")
    command = ["train", "tictactoe", "--out", str(tmp_path / "run"), *words]
    assert main([*command, "--launch", "ray"]) == 1
    assert capsys.readouterr().err == "tengen: on a cluster: cuda:4, cuda:4\n"
    # What is no device is refused wherever it would be.
    assert main([*command, "--launch", "ray", "--devices", "gpu"]) == 2
    assert capsys.readouterr().err.startswith("tengen: devices (gpu) must be ")
    assert main(command) == 2
    assert "(cuda:4) does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["selfplay", "learn"])
def test_a_role_looks_for_its_gpus_when_it_begins(tmp_path: Path, name: str) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = with_devices(config_with(), "cuda:4", is_here=False)
    write_config(run, config)
    with refused(UsageError, "(cuda:4)"):
        make_role(name, config, run, RoleContext())


def test_a_role_refuses_an_absent_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config_with())
    command = ["selfplay", str(run.path), "--once", "--devices", "cuda:9"]
    assert main(command) == 2
    assert "devices (cuda:9) does not exist" in capsys.readouterr().err


def chosen_run(path: Path, asked: InferenceConfig) -> RunDirectory:
    """A run on a CPU with bf16, whose settings were open as ``asked``."""
    run = RunDirectory.create_or_resume(path)
    config = config_with(inference=asked)
    write_config(run, config)
    choice = Choice(CHOSEN, "1", True, {"fp32": 1.0, "bf16": 2.0})
    record_inference(run, choice, asked, config.net)
    return run


@pytest.fixture
def cpu_has(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has this host's CPU compute these precisions alone."""

    def have(*precisions: str) -> None:
        for module in ("choice", "openvino_backend"):
            there = f"tengen.inference.{module}.supported_precisions"
            monkeypatch.setattr(there, lambda: precisions)

    return have


def test_a_measured_precision_is_measured_again_where_the_cpu_lacks_it(
    tmp_path: Path, cpu_has: Callable[..., None]
) -> None:
    asked = InferenceConfig(devices="auto", batch_rows=CHOSEN.batch_rows)
    run = chosen_run(tmp_path / "run", asked)
    cpu_has("fp32", "bf16")
    assert possible_inference(run, CHOSEN) == CHOSEN
    cpu_has("fp32")
    again = dataclasses.replace(asked, devices="cpu")
    assert possible_inference(run, CHOSEN) == again
    train_task("tictactoe", out=run.path, games=0)
    assert read_config(run).inference == again


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_precision_that_somebody_set_is_refused_where_the_cpu_lacks_it(
    tmp_path: Path, cpu_has: Callable[..., None], is_asked: bool
) -> None:
    """In the first call, or in this one."""
    asked = CHOSEN if is_asked else InferenceConfig(devices="cpu")
    run = chosen_run(tmp_path / "run", asked)
    cpu_has("fp32")
    settings = [] if is_asked else ["inference.precision=bf16"]
    with refused(UsageError, "inference.precision (bf16)"):
        train_task("tictactoe", out=run.path, games=0, settings=settings)
    assert read_config(run).inference == CHOSEN
