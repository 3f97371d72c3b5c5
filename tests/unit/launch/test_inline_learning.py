"""How many turns the inline launcher lets the learner take in a generation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.launch import Budget
from tengen.launch.budget import Spending
from tengen.launch.turns import Turns
from tengen.launch.workers import workers_in_turns
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import (
    RoleContext,
    RoleHost,
    RunConfig,
    StopListener,
    read_config,
    write_config,
)
from tengen.run import RunDirectory


class Scripted:
    """A process whose learner reports what it was told to."""

    def __init__(self, reports: list[dict[str, Any] | None]) -> None:
        self.turns: list[str] = []
        self._reports = reports

    def turn(self, role: str, *_: Any) -> dict[str, Any] | None:
        self.turns.append(role)
        return self._reports.pop(0) if role == "learn" else {}


def crew_of(config: RunConfig, process: Any) -> Any:
    """Processes that are all this one."""
    workers = workers_in_turns(config, 1)
    found = SimpleNamespace(handle=lambda worker: process)
    found.of_role = lambda role: next(one for one in workers if role in one.roles)
    return found


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
        crew = crew_of(config, process)
        Turns(config, run, Spending(Budget()), journal, crew, stop)._learn()
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
        crew = crew_of(config, process)
        Turns(config, run, Spending(Budget()), journal, crew, stop)._learn()
    assert process.turns == ["learn"]


def test_the_learner_reads_what_self_play_made_fit(tmp_path: Path) -> None:
    """Once: after a generation that was cut short, learning waits for fewer rows."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config = make_config("tictactoe", None, None)
    write_config(run, config)
    fitted = {
        "games_per_generation": 40,
        "num_slots": 10,
        "game_s": 1.0,
        "generation_s": 2.0,
        "num_rows": 300,
    }
    told: list[tuple[str, Any, Any]] = []

    class Played:
        def turn(self, role: str, progress: Any, death: Any, details: Any) -> Any:
            told.append((role, details["generation_s"], details["is_changed"]))
            if role != "selfplay":
                return None
            return {"num_games": 40, "num_rows": 300, "fitted": dict(fitted)}

    journal: Any = NoJournal()
    with StopListener(run) as stop:
        crew = crew_of(config, Played())
        budget = Budget(minutes=8.0, fits_generations=True)
        turns = Turns(config, run, Spending(budget), journal, crew, stop)
        turns._play()
        turns._learn()
        turns._learn()
    assert told[0] == ("selfplay", 30.0, False)  # half of an eighth of the minutes
    changed = [is_changed for role, _, is_changed in told if role == "learn"]
    assert changed == [True, False]
    found: Any = read_config(run)
    assert found.agent.actor.games_per_generation == 40
    assert found.store.min_rows == 300


def test_a_role_that_is_to_read_the_config_again_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    made: list[Any] = []

    class Role:
        def __init__(self, config: Any) -> None:
            self.min_rows = config.store.min_rows
            self.is_closed = False

        def turn(self) -> dict[str, Any]:
            return {"min_rows": self.min_rows}

        def close(self) -> None:
            self.is_closed = True

    def make(name: str, config: Any, run: Any, context: Any) -> Role:
        assert all(role.is_closed for role in made)  # its locks are free
        made.append(Role(config))
        return made[-1]

    monkeypatch.setattr("tengen.roles.host.make_role", make)
    host = RoleHost(run, RoleContext(), None)
    details = {"sealed": 0}
    assert host.turn("learn", details) == {"min_rows": 500}
    changed = override(read_config(run), ("store.min_rows=100",))
    write_config(run, changed)
    assert host.turn("learn", details) == {"min_rows": 500}
    assert host.turn("learn", {**details, "is_changed": True}) == {"min_rows": 100}
    assert host.turn("learn", details) == {"min_rows": 100}
    assert len(made) == 2
