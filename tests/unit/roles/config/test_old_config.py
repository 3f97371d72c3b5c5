"""Configs as earlier versions wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tengen.cli import main
from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles import RunConfig, read_config
from tengen.run import RunDirectory
from tests.refusals import refused

OF_SELFPLAY = ("actor", "loss", "stages", "learn_from", "gate", "rating")
# How players played before runs said it, which their runs go on with.
PLAYED = [
    "agent.play.precision=fp32",
    "agent.play.batch_rows=0",
    "agent.play.search.lcb_stdevs=0",
]
CHANGED = (
    "agent.actor.num_slots=7",
    "agent.loss.value_cost=0.5",
    "agent.learn_from=/elsewhere",
    "agent.gate.kind=sprt",
    "agent.gate.elo0=0",
    "agent.rating.num_games=4",
    'agent.stages=[{"share": 0.3, "net": {"kind": "resnet", "num_blocks": 3}}]',
)


def as_before(config: RunConfig) -> dict[str, Any]:
    """A config when ``agent`` was a name and its settings stood beside it."""
    content: dict[str, Any] = to_dict(config)
    agent = content.pop("agent")
    content |= {name: agent[name] for name in OF_SELFPLAY}
    content["actor"] = {"kind": "selfplay", **agent["actor"]}
    content["loss"] = {"kind": "alphazero", **agent["loss"]}
    return {**content, "agent": "alphazero"}


def test_what_stood_beside_the_agent_is_the_agents(tmp_path: Path) -> None:
    config = override(make_config("tictactoe", None, None), [*CHANGED, *PLAYED])
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": as_before(config)})
    assert read_config(run) == config


def test_fields_that_came_later_have_their_defaults(tmp_path: Path) -> None:
    config = override(make_config("tictactoe", None, None), PLAYED)
    content = as_before(config)
    for name in ("learn_from", "gate", "stages"):
        del content[name]
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": content})
    assert read_config(run) == config


def test_a_key_that_nobody_knows_is_still_refused(tmp_path: Path) -> None:
    content = as_before(make_config("tictactoe", None, None))
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {**content, "stage": 3}})
    with refused(UsageError, "run.json.stage (3)"):
        read_config(run)
    run.write_run({"config": {**content, "actor": 3}})
    with refused(UsageError, "agent.actor (3)"):
        read_config(run)


def test_a_run_of_an_environment_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    actor = {"kind": "environment", "num_envs": 16}
    content = {"task": "CartPole-v1", "agent": "vtrace", "actor": actor}
    run.write_run({"config": content})
    line = (
        f"agent (vtrace) of {run.path / 'run.json'} is from an earlier version, whose "
        "experience this version cannot read; choose another --out"
    )
    with pytest.raises(UsageError) as error:
        read_config(run)
    assert str(error.value) == line
    with refused(UsageError, "is from an earlier version"):
        train_task("CartPole-v1", out=run.path, minutes=0.1)
    assert main(["learn", str(run.path), "--once"]) == 2
    assert line in capsys.readouterr().err
    # It may be looked at all the same.
    assert main(["status", str(run.path)]) == 0
    assert "CartPole-v1" in capsys.readouterr().out
