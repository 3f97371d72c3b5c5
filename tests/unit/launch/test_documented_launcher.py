"""The worked example of docs/adding/launcher.md, put where it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen import launch
from tengen.launch import LAUNCHERS, launcher_of
from tengen.launch.launcher import Handle, Launcher
from tengen.launch.process import Processes
from tengen.launch.wire import Hub
from tengen.launch.workers import Worker
from tengen.recipes import make_config
from tengen.recipes.run import train_task as train
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.integration.runs import events
from tests.unit.launch.children import the_hub

__all__ = ["the_hub"]

PAGE = Path(__file__).parents[3] / "docs" / "adding" / "launcher.md"


@pytest.fixture
def nice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The page's launcher, found by the page's row."""
    text = PAGE.read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    (name,) = re.findall(r"`src/tengen/launch/(\w+\.py)`\. A test runs it", text)
    (row,) = re.findall(r'^The row: `"(\w+)": "([\w.:]+)"`', text, re.M)
    (tmp_path / name).write_text(block)
    monkeypatch.setattr(launch, "__path__", [*launch.__path__, str(tmp_path)])
    monkeypatch.setitem(LAUNCHERS, *row)
    return launcher_of(row[0])


@pytest.mark.parametrize("protocol", [Handle, Launcher])
def test_the_page_names_every_method_of_what_a_launcher_has(protocol: type) -> None:
    named = set(re.findall(r"`(\w+)(?:\([^`]*\))?`", PAGE.read_text()))
    methods = {name for name in vars(protocol) if not name.startswith("_")}
    assert methods
    assert methods <= named


def test_its_processes_take_turns_with_a_lower_priority(
    nice: Any, tmp_path: Path, hub: Hub
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    process = Processes(nice(), hub, run, "tictactoe", at_once=False).start(
        Worker(name="gate", roles=("gate",))
    )
    details = {"sealed": 0}
    try:
        turn = process.turn("gate", lambda report: None, lambda *words: None, details)
        assert turn is None  # there is no candidate
        holder = run.lock_holder("gate")
        assert holder is not None
        own = os.getpriority(os.PRIO_PROCESS, 0)
        priority = os.getpriority(os.PRIO_PROCESS, int(holder.split()[0]))
        assert priority == min(19, own + 10)
    finally:
        process.close()


@pytest.mark.slow
def test_it_trains(nice: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Behind all other tests nothing of the processor would be left for minutes.
    module = sys.modules[nice.__module__]

    def begin(words: list[str], **options: Any) -> Any:
        assert words[:3] == ["nice", "-n", "10"]
        return subprocess.Popen(["nice", "-n", "1", *words[3:]], **options)

    changed = SimpleNamespace(**{**vars(subprocess), "Popen": begin})
    monkeypatch.setattr(module, "subprocess", changed)
    out = tmp_path / "run"
    report = train(
        "tictactoe",
        launch="nice",
        games=64,
        out=out,
        threads=2,
        settings=[
            "agent.actor.games_per_generation=32",
            "agent.actor.full_simulations=8",
            "store.min_rows=64",
            "learner.batch_size=32",
            "inference.precision=fp32",
            "inference.backend=openvino",
            "inference.batch_shape=dynamic",
        ],
    )
    assert report["exit_code"] == 0
    assert report["num_games"] >= 64
    run = RunDirectory(out)
    assert (run.models.latest() or 0) >= 1
    turns = events(out, "turn")
    assert {turn["role"] for turn in turns} >= {"selfplay", "learn", "export", "gate"}
