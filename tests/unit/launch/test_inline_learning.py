"""The schedule of turns: how often each role has one, on roles that only report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tengen.launch import Budget
from tengen.launch.schedule import run_schedule
from tengen.launch.workers import Worker
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig, StopListener, read_config, write_config
from tengen.run import RunDirectory
from tests.unit.launch.fake_roles import Journal, called

PLAYED = {"num_games": 40, "num_rows": 300, "num_evaluations": 0}
FITTED = {
    "games_per_generation": 40,
    "num_slots": 10,
    "game_s": 1.0,
    "generation_s": 2.0,
    "num_rows": 300,
}


class Scripted:
    """All processes of a run, whose learner reports what it is given, then nothing."""

    def __init__(self, *reports: dict[str, Any] | None) -> None:
        self.turns: list[tuple[str, Any]] = []
        self._reports = list(reports)

    def start(self, worker: Worker) -> Any:
        return self

    def turn(self, role: str, progress: Any, death: Any, details: Any) -> Any:
        self.turns.append((role, details))
        if role == "selfplay":
            return {**PLAYED, "fitted": dict(FITTED)}
        return self._reports.pop(0) if role == "learn" and self._reports else None

    def stop(self) -> None: ...

    def close(self) -> None: ...

    @property
    def names(self) -> list[str]:
        return [role for role, _ in self.turns]


def config(*settings: str) -> RunConfig:
    rated = "agent.rating.time_share=0"
    return override(make_config("tictactoe", None, None), [rated, *settings])


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that has its first model."""
    made = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(made, config())
    return made


def take_turns(
    run: RunDirectory, processes: Any, budget: Budget, *settings: str
) -> None:
    with StopListener(run) as stop:
        call = called(config(*settings), run, budget, Journal(), stop)
        run_schedule(processes, call, takes_turns=True)


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
    run: RunDirectory, reports: list[dict[str, Any] | None], num_turns: int
) -> None:
    process = Scripted(*reports)
    take_turns(run, process, Budget(games=1), "store.drawn_by=shuffle")
    ends = process.names.index("gate") + 1
    learned = ["shuffle", *["learn"] * num_turns, "export", "gate"]
    assert process.names[:ends] == learned


def test_a_checkpoint_of_the_actors_process_is_exported_once(tmp_path):
    class Stepping(Scripted):
        def turn(self, role, *told):
            report = super().turn(role, *told)
            played = {"num_rows": 100, "num_evaluations": 100, "num_episodes": 0}
            return {**played, "num_items": 5} if role == "actor" else report

    chosen = override(make_config("CartPole-v1", "ppo", None), [])
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, chosen)
    # The second turn of the learner saves nothing; after the third it is not known.
    numbers = [{"checkpoint": 0}, {"checkpoint": 0}, {}, {"checkpoint": 1}]
    process = Stepping(*numbers)
    with StopListener(run) as stop:
        call = called(chosen, run, Budget(frames=200), Journal(), stop)
        run_schedule(process, call, takes_turns=True)
    ends = [at for at, name in enumerate(process.names) if name == "learn"]
    turns = [process.names[at + 1 : at + 3] for at in ends]
    assert turns[0] == turns[2] == turns[3] == ["export", "gate"]
    assert turns[1] == ["actor", "learn"]


@pytest.mark.parametrize("num_left", [0, 1, 2])
def test_the_last_model_of_a_call_is_published(tmp_path, num_left):
    """Also if an earlier call left candidates."""

    class Publishing(Scripted):
        exported, num_learned = -1, 0

        def turn(self, role, progress, death, details):
            self.turns.append((role, details))
            if role == "actor":
                played = {"num_rows": 100, "num_evaluations": 100, "num_episodes": 0}
                return {**played, "num_items": 5}
            if role == "learn":
                self.num_learned += 1
                return {"checkpoint": 4 if details["saves"] else self.num_learned // 3}
            if role == "export":
                newest = 4 if details["saves"] else self.num_learned // 3
                if newest == self.exported:
                    return None
                self.exported = newest
                self.candidates.append(newest)
                return {"candidate": newest}
            if role == "gate" and self.candidates:
                self.models.append(self.candidates.pop(0))
                return {"accepted": True}
            return None

    chosen = override(make_config("CartPole-v1", "ppo", None), [])
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, chosen)
    process = Publishing()
    process.models = []
    process.candidates = list(range(-num_left, 0))
    with StopListener(run) as stop:
        call = called(chosen, run, Budget(frames=500), Journal(), stop)
        run_schedule(process, call, takes_turns=True)
    assert process.models[-1] == 4


def test_a_stop_between_two_epochs_ends_the_loop(run: RunDirectory) -> None:
    class Stopped(Scripted):
        def turn(self, role: str, *told: Any) -> Any:
            run.request_stop()
            listener.event.wait(900)
            return super().turn(role, *told)

    process = Stopped({"num_new": 9, "steps_left": 7, "stopped": True})
    any_process: Any = process
    with StopListener(run) as listener:
        call = called(config(), run, Budget(games=1), Journal(), listener)
        run_schedule(any_process, call, takes_turns=True)
    assert process.names == ["learn"]


def test_the_learner_reads_what_self_play_made_fit(run: RunDirectory) -> None:
    """Once: after a generation that was cut short, learning waits for fewer rows."""

    class Fitting(Scripted):
        def turn(self, role: str, *told: Any) -> Any:
            report = super().turn(role, *told)
            if self.names.count("selfplay") > 1:
                report = report and PLAYED
            if self.names.count("selfplay") > 2:
                run.request_stop()
                listener.event.wait(900)
            return report

    process = Fitting()
    any_process: Any = process
    with StopListener(run) as listener:
        budget = Budget(minutes=8.0, fits_generations=True)
        call = called(config(), run, budget, Journal(), listener)
        run_schedule(any_process, call, takes_turns=True)
    played = [told for role, told in process.turns if role == "selfplay"]
    # Half of an eighth of the minutes.
    assert (played[0]["generation_s"], played[0]["is_changed"]) == (30.0, False)
    changed = [told["is_changed"] for role, told in process.turns if role == "learn"]
    assert changed == [False, False, True, False]
    found: Any = read_config(run)
    assert found.agent.actor.games_per_generation == 40
    assert found.store.min_rows == 300
