"""Matches with a target: where their processes are, and how they end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import RunError, TengenError
from tengen.launch import Budget
from tengen.launch.cluster.table import table_of
from tengen.launch.launcher import Placed, match_places
from tengen.launch.match import meet_target
from tengen.launch.ranks.table import filled, place
from tengen.launch.workers import Worker
from tengen.roles import StopListener
from tengen.run import RunDirectory
from tests.unit.launch.cluster.test_cluster_table import node
from tests.unit.launch.fake_roles import (
    Fake,
    Journal,
    Turn,
    called,
    config,
    in_a_moment,
    without_room,
)
from tests.unit.launch.ranks.test_rank_table import info

GPU = "launch.roles.learn.num_gpus=1"
PLAYS_ON_GPU = "launch.roles.selfplay.num_gpus=1"


@pytest.mark.parametrize(
    ("settings", "hosts"),
    [
        ((), ["b", "a"]),
        ((GPU,), ["b", "a"]),
        # The learner has none, so that it could not play as self-play does.
        ((PLAYS_ON_GPU,), ["b"]),
        ((GPU, PLAYS_ON_GPU), ["b", "a"]),
    ],
)
def test_a_match_has_what_acted_and_learned_on_ranks(
    settings: tuple[str, ...], hosts: list[str]
) -> None:
    ranks = [info(0, "a", devices=["0"]), info(1, "b", devices=["0"])]
    made = config(*settings)
    places = match_places(made, place(filled(made, ranks), ranks))
    assert [one.host for one in places] == hosts
    assert [one.worker.name for one in places] == [
        f"eval-{index}" for index in range(len(hosts))
    ]
    assert {one.worker.roles for one in places} == {("eval",)}


def test_a_match_has_what_acted_and_learned_on_a_cluster() -> None:
    made = config("launch.roles.selfplay.count=2")
    before = table_of(made, [node("a", 4), node("b", 4)])
    places = match_places(made, before)
    asked = {one.worker.name: one for one in before}
    wanted = ("selfplay-0", "selfplay-1", "learn")
    assert [one.num_cpus for one in places] == [asked[one].num_cpus for one in wanted]
    assert [one.node for one in places] == [asked[one].node for one in wanted]


class Processes:
    """The processes of a match, each of which follows a script."""

    def __init__(self, *turns: Turn) -> None:
        self.fakes: list[Fake] = []
        self._turns = turns

    def start_at(self, placed: Placed) -> Fake:
        fake = Fake("eval", self._turns[placed.worker.index])
        self.fakes.append(fake)
        return fake


class Deaths(Journal):
    def __init__(self) -> None:
        super().__init__()
        self.deaths: list[str] = []

    def death(self, role: str, how: str) -> None:
        self.deaths.append(role)


def parts(number: int) -> Turn:
    """Plays so many parts, until nothing is left."""

    def turn(fake: Fake) -> dict[str, Any] | None:
        if fake.num_turns > number:
            return None
        return {"model": 1, "part": fake.num_turns, "cpu_s": 1.0}

    return turn


def until_stopped(fake: Fake) -> dict[str, Any]:
    assert fake.stopped.wait(900)
    return {"model": 1, "stopped": True}


def fails(fake: Fake) -> dict[str, Any]:
    raise RunError("model (000001) is damaged")


def met(path: Path, *turns: Turn) -> tuple[Processes, Journal, TengenError | None]:
    processes, journal = Processes(*turns), Deaths()
    any_processes: Any = processes
    places = [
        Placed(worker=Worker(name=f"eval-{index}", roles=("eval",), index=index))
        for index in range(len(turns))
    ]
    made = config("agent.target.opponent=mcts:3", "agent.iterations=1")
    run = RunDirectory.create_or_resume(path)
    with StopListener(run) as stop:
        try:
            call = called(made, run, Budget(), journal, stop)
            meet_target(any_processes, places, call)
        except TengenError as error:
            return processes, journal, error
        finally:
            assert all(one.is_closed for one in processes.fakes)
    return processes, journal, None


@pytest.mark.parametrize("other", [parts(9), until_stopped, in_a_moment])
def test_processes_share_a_match_and_end_when_nothing_is_left(
    tmp_path: Path, other: Turn
) -> None:
    processes, journal, error = met(tmp_path, parts(3), other)
    assert error is None
    first = [report for _, report in journal.reports if report["part"] <= 3]
    assert len(first) >= 3
    assert not any("cpu_s" in report for _, report in journal.reports)
    assert processes.fakes[0].details == [{"opponent": "mcts:3"}] * 4


@pytest.mark.parametrize(
    ("turns", "line"),
    [
        ((fails, until_stopped), "model (000001) is damaged"),
        ((until_stopped, fails), "model (000001) is damaged"),
        (
            (without_room, without_room),
            "role (eval-0, eval-1) has waited ",
        ),
    ],
)
def test_one_that_fails_ends_the_match(
    tmp_path: Path, turns: tuple[Turn, ...], line: str
) -> None:
    _, _, error = met(tmp_path, *turns)
    assert str(error).startswith(line)


def test_a_stop_ends_the_match(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path)
    timer = threading.Timer(0.5, run.request_stop)
    timer.start()
    processes, _, error = met(tmp_path, until_stopped, until_stopped)
    timer.join()
    assert error is None
    assert [one.num_turns for one in processes.fakes] == [1, 1]
