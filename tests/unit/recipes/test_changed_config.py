"""What ``tengen train --games 0`` says of a run that it makes or changes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tengen.nets import ResNetConfig
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.run import train_task
from tengen.roles import config_changes, read_config
from tengen.roles.clock import run_open_because
from tengen.run import RunDirectory


def call(out: Path, *settings: str) -> dict[str, Any]:
    return train_task("tictactoe", out=out, games=0, devices="cpu", settings=settings)


def test_it_says_what_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert call(out, "store.min_rows=8000")["reason"] == "made"
    names = "tengen selfplay, tengen learn, tengen export, tengen gate"
    assert capsys.readouterr().out == f"{out} is made; start {names} on it\n"

    report = call(out, "store.min_rows=1000", "agent.gate.kind=match")
    changes = ["agent.gate.kind accept_all -> match", "store.min_rows 8000 -> 1000"]
    assert report["reason"] == "changed"
    assert report["changes"] == changes
    what = "agent.gate.kind accept_all -> match, store.min_rows 8000 -> 1000"
    assert capsys.readouterr().out == (
        f"{out} is changed, {what}; roles use the change from their next turn on\n"
    )
    assert read_config(RunDirectory(out)).store.min_rows == 1000

    assert call(out, "store.min_rows=1000")["reason"] == "unchanged"
    assert capsys.readouterr().out == (
        f"{out} is as it was, nothing is changed; {names} go on with it\n"
    )


def test_a_run_is_open_by_what_a_call_only_wrote(tmp_path: Path) -> None:
    def written(*settings: str) -> list[str]:
        out = tmp_path / "run"
        needs_none = "agent.target.needs_opponent=false"
        train_task(
            "go/5",
            recipe="mlperf_minigo_small",
            out=out,
            games=0,
            devices="cpu",
            settings=(needs_none, *settings),
        )
        told = run_open_because(RunDirectory(out))
        return [reason for reason in told if "num_generations" in reason]

    assert written() == []
    other = "store.num_generations (4) is 5 in the closed division"
    # Also where the call hides that it is a run of the benchmark.
    assert written("agent.iterations=0", "agent.target.opponent=") == []
    assert written("store.num_generations=4") == [other]
    assert written("store.num_generations=5", "agent.iterations=8") == [other]


def test_each_field_is_named_by_its_path() -> None:
    config = make_config("tictactoe", None, None)
    assert config_changes(config, config) == []
    settings = (
        "learner.initial_model=runs/x",
        'agent.rating.anchors=["random"]',
        "seed=4",
    )
    changed = override(config, settings)
    num_anchors = len(config.agent.rating.anchors)
    assert config_changes(config, changed) == [
        f"number of agent.rating.anchors {num_anchors} -> 1",
        'learner.initial_model "" -> runs/x',
        "seed 0 -> 4",
    ]


def test_a_run_for_roles_by_themselves_has_the_network_that_it_would_grow_to(
    tmp_path: Path,
) -> None:
    recipe = make_config("go/9", None, None)
    stages = recipe.agent.stages
    made = {}
    for name, settings in (("all", []), ("own", ["net.num_blocks=3"])):
        train_task(
            "go/9",
            out=tmp_path / name,
            games=0,
            minutes=600.0,
            threads=2,
            devices="cpu",
            settings=settings,
        )
        made[name] = read_config(RunDirectory(tmp_path / name))
    # A call of train may go on with it, and then it grows further.
    assert made["all"].agent.stages == stages[2:]
    largest = stages[1].net
    net = made["all"].net
    assert isinstance(net, ResNetConfig)
    assert (net.num_blocks, net.num_channels) == (
        largest.num_blocks,
        largest.num_channels,
    )
    # Whoever chooses the network begins with that one.
    assert made["own"].net == dataclasses.replace(recipe.net, num_blocks=3)
    assert made["own"].agent.stages == stages
