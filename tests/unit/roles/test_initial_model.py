"""A run that begins with the weights of a model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from tengen.errors import UsageError
from tengen.nets import ResNetConfig
from tengen.recipes import make_config
from tengen.roles.config import RunConfig, write_config
from tengen.roles.export import ExportRole
from tengen.roles.gate import GateRole
from tengen.roles.learn import LearnRole
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory

SMALL = ResNetConfig(num_blocks=2, num_channels=8)


def config_of(net: ResNetConfig = SMALL, **learner: Any) -> RunConfig:
    config = make_config("tictactoe", None, None)
    return dataclasses.replace(
        config,
        net=net,
        stages=(),
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


def weights(role: LearnRole) -> dict[str, torch.Tensor]:
    return {name: t.clone() for name, t in role._learner.net.state_dict().items()}


def test_a_new_run_has_the_weights_of_the_model(source: Path, tmp_path: Path) -> None:
    other = dataclasses.replace(config_of(), seed=5)
    role = begun(other, tmp_path / "same-seed")
    wanted = weights(role)
    role.close()
    for word in (str(source), f"{source}@0", str(source / "models" / "000000")):
        role = begun(config_of(initial_model=word), tmp_path / f"run-{len(word)}")
        found = weights(role)
        role.close()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        assert role._learner.net.stem.weight.requires_grad
    role = begun(config_of(), tmp_path / "without")
    assert not torch.equal(weights(role)["stem.weight"], wanted["stem.weight"])
    role.close()


def test_a_larger_network_grows_from_it(source: Path, tmp_path: Path) -> None:
    larger = ResNetConfig(num_blocks=3, num_channels=16)
    small = begun(config_of(initial_model=str(source)), tmp_path / "small")
    large = begun(config_of(larger, initial_model=str(source)), tmp_path / "large")
    planes = torch.randn(4, 3, 3, 3)
    planes[:, 0] = 1.0
    for role in (small, large):
        role._learner.net.eval()
        role.close()
    for a, b in zip(
        small._learner.net(planes), large._learner.net(planes), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_run_that_goes_on_does_not_ask_for_it(source: Path, tmp_path: Path) -> None:
    config = config_of(initial_model=str(source))
    role = begun(config, tmp_path / "run")
    role.turn()
    wanted = weights(role)
    role.close()
    source.rename(tmp_path / "elsewhere")
    role = begun(config, tmp_path / "run")
    found = weights(role)
    role.close()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def test_what_does_not_fit_is_one_line(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a run directory"):
        begun(config_of(initial_model="nowhere"), tmp_path / "a")
    smaller = ResNetConfig(num_blocks=2, num_channels=12, head_channels=8)
    with pytest.raises(UsageError, match=r"initial_model .* must have a network that"):
        begun(config_of(smaller, initial_model=str(source)), tmp_path / "b")
    connect4 = dataclasses.replace(
        make_config("connect4", None, None),
        net=SMALL,
        stages=(),
        learner=config_of(initial_model=str(source)).learner,
    )
    with pytest.raises(UsageError, match="features"):
        begun(connect4, tmp_path / "c")
