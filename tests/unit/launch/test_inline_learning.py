"""How many turns the inline launcher lets the learner take in a generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tengen.launch import Budget
from tengen.launch.budget import Spending
from tengen.launch.inline import Turns
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import StopListener
from tengen.run import RunDirectory

LEARNING = ("shuffle", "learn", "export", "gate")


class Scripted:
    """A process whose learner reports what it was told to."""

    def __init__(self, reports: list[dict[str, Any] | None]) -> None:
        self.turns: list[str] = []
        self._reports = reports

    def turn(self, role: str, *_: Any) -> dict[str, Any] | None:
        self.turns.append(role)
        return self._reports.pop(0) if role == "learn" else {}


class NoJournal:
    def death(self, role: str, how: str) -> None:
        pass

    def report(self, role: str, report: dict[str, Any], seconds: float) -> None:
        pass


@pytest.mark.parametrize(
    ("reports", "num_turns"),
    [
        # Nothing is new.
        ([None], 1),
        ([{"num_steps": 0, "checkpoint": 0}], 1),
        ([{"num_new": 9, "steps_left": 0}], 1),
        # A generation of three epochs.
        (
            [
                {"num_new": 9, "steps_left": 7},
                {"num_new": 0, "steps_left": 2},
                {"num_new": 0, "steps_left": 0},
            ],
            3,
        ),
        # Others play faster than it learns: models come all the same.
        ([{"num_new": 9, "steps_left": 7}, {"num_new": 9, "steps_left": 8}], 2),
        ([{"num_new": 0, "steps_left": 7}, None], 2),
    ],
)
def test_a_generation_is_learned_whole_before_the_export(
    tmp_path: Path, reports: list[dict[str, Any] | None], num_turns: int
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    process: Any = Scripted(reports)
    journal: Any = NoJournal()
    with StopListener(run) as stop:
        config = override(
            make_config("tictactoe", None, None), ("store.drawn_by=shuffle",)
        )
        handles = dict.fromkeys(LEARNING, process)
        Turns(config, run, Spending(Budget()), journal, handles, stop)._learn()
    assert process.turns == ["shuffle", *["learn"] * num_turns, "export", "gate"]


def test_a_stop_between_two_epochs_ends_the_loop(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    with StopListener(run) as stop:

        class Stopped(Scripted):
            def turn(self, role: str, *_: Any) -> dict[str, Any] | None:
                stop.event.set()
                return super().turn(role)

        process: Any = Stopped([{"num_new": 9, "steps_left": 7, "stopped": True}])
        journal: Any = NoJournal()
        config = make_config("tictactoe", None, None)
        handles = dict.fromkeys(LEARNING, process)
        Turns(config, run, Spending(Budget()), journal, handles, stop)._learn()
    assert process.turns == ["learn"]
