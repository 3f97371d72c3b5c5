"""Processes that a cluster has no room for, on roles that only count."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tengen.errors import RunError
from tengen.launch import Budget, RunJournal
from tengen.launch.taking import Waiting
from tengen.launch.workers import workers_at_once
from tengen.observe import EventWriter, Progress, read_progress
from tengen.observe.status import read_status
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig, write_config
from tengen.run import RunDirectory
from tests.integration.runs import wait_for
from tests.refusals import refused
from tests.unit.launch.fake_roles import (
    Fake,
    Journal,
    Turn,
    config,
    in_a_moment,
    played,
    train,
    until_stopped,
    without_room,
)


@pytest.fixture
def run(tmp_path: Any) -> RunDirectory:
    return RunDirectory.create_or_resume(tmp_path / "run")


def test_the_end_of_the_time_ends_what_never_began_and_names_it(
    run: RunDirectory,
) -> None:
    scripts: dict[str, Turn] = {
        "learn": in_a_moment,
        "export": in_a_moment,
        "gate": in_a_moment,
        "selfplay": until_stopped,
    }
    start_s = time.monotonic()
    journal = Journal()
    with refused(RunError, "role (learn, export, gate)", "never"):
        train(run, scripts, Budget(minutes=0.01), journal=journal)
    assert time.monotonic() - start_s < 600
    assert {name for names in journal.waits for name in names} >= {"learn", "gate"}


def test_who_is_not_needed_may_wait_for_ever(run: RunDirectory) -> None:
    made = config("agent.rating.time_share=0.9")
    scripts: dict[str, Turn] = {"selfplay": played, "rate": without_room}
    roles, _ = train(run, scripts, Budget(games=25), made)
    assert roles.fakes["selfplay"].num_turns == 3


@pytest.mark.parametrize("role", ["learn", "export", "gate", "selfplay"])
def test_a_needed_role_that_has_no_room_for_long_ends_the_run(
    run: RunDirectory, role: str
) -> None:
    """As where the learner's host is lost for good: nobody plays on for nothing."""
    scripts: dict[str, Turn] = {"selfplay": until_stopped, role: without_room}
    with refused(RunError, f"role ({role})", "for 90 minutes"):
        train(run, scripts, Budget(), config("launch.wait_minutes=90"))


def test_a_stop_is_no_error_though_nothing_began(run: RunDirectory) -> None:
    scripts: dict[str, Turn] = {"learn": in_a_moment, "selfplay": until_stopped}

    def stopping(stop: Any, roles: Any) -> None:
        while "learn" not in roles.fakes or not roles.fakes["learn"].num_turns:
            time.sleep(0.01)
        run.request_stop()

    train(run, scripts, Budget(), stopping=stopping)


def test_room_that_comes_is_told_and_forgotten(run: RunDirectory) -> None:
    journal, has_room = Journal(), threading.Event()

    def learn(fake: Fake) -> None:
        if fake.num_turns == 1:
            fake.tell({"stage": "waiting", "waiting_s": 11.0})
            wait_for(lambda: journal.waits == [["learn"]])
            fake.tell({"stage": ""})
            wait_for(lambda: journal.waits == [["learn"], []])
            has_room.set()

    def play(fake: Fake) -> dict[str, Any]:
        has_room.wait(900)
        return played(fake)

    scripts: dict[str, Turn] = {"selfplay": play, "learn": learn}
    train(run, scripts, Budget(games=1), journal=journal)
    assert journal.waits == [["learn"], []]


def waiting(*settings: str) -> tuple[Waiting, list[Any]]:
    made: RunConfig = override(make_config("tictactoe", None, None), list(settings))
    return Waiting(made.schedule, made.launch), workers_at_once(made, 4)


def test_one_of_several_that_play_may_wait_and_all_of_them_may_not() -> None:
    known, workers = waiting("launch.roles.selfplay.count=2")
    players = [one for one in workers if one.roles == ("selfplay",)]
    known.note(players[0], 700.0)
    known.check(workers)
    known.check_end(workers)
    known.note(players[1], 5.0)
    known.check(workers)  # so long nobody plays
    known.note(players[1], 601.0)
    with refused(RunError, "role (selfplay-0, selfplay-1)"):
        known.check(workers)
    known.note(players[1], None)
    known.check(workers)
    known.note(players[1], 1.0)
    with refused(RunError, "role (selfplay-0, selfplay-1)"):
        known.check_end(workers)
    known.forget(players[0])
    with refused(RunError, "role (selfplay-1)"):
        known.check_end([one for one in workers if one != players[0]])


def test_games_that_wait_with_a_process_are_played_by_others(
    run: RunDirectory,
) -> None:
    """One takes the last games of the budget, and never has room."""
    taken = threading.Event()

    def wait(fake: Fake) -> dict[str, Any]:
        fake.tell({"stage": "waiting", "waiting_s": 0.1})
        taken.set()
        return in_a_moment(fake)

    def play(fake: Fake) -> dict[str, Any] | None:
        if not taken.is_set():
            return None
        return {**played(fake), "num_rows": 10, "num_evaluations": 10}

    made = config("launch.roles.selfplay.count=2")
    games = made.schedule.games_per_turn
    scripts: dict[str, Turn] = {"selfplay": wait, "selfplay-1": play}
    roles, _ = train(run, scripts, Budget(games=games), made)
    assert roles.fakes["selfplay-1"].num_turns > 0


def test_status_names_who_waits_instead_of_advice_on_cores(run: RunDirectory) -> None:
    shown: list[str] = []

    class View:
        def message(self, text: str) -> None:
            shown.append(text)

        def generation(self, progress: Progress) -> None:
            shown.append(progress.verdict)

        def update(self, progress: Progress) -> None:
            pass

    write_config(run, config())
    view: Any = View()
    journal = RunJournal(
        view,
        EventWriter(run, "train", run.new_incarnation("train")),
        acting="selfplay",
        last=Progress(generation=2, elapsed_s=9.0, verdict="give more cores"),
    )
    line = "learn, export wait for the cluster: if ray status shows no"
    journal.waiting(["learn", "export"])
    assert shown[0].startswith(line)
    found = read_progress(run)
    assert found is not None
    assert found.verdict.startswith(line)
    assert read_status(run)["progress"]["verdict"] == found.verdict
    journal.waiting([])
    assert shown[1] == "every process has its cluster resources now"
    found = read_progress(run)
    assert found is not None
    assert found.verdict == ""
