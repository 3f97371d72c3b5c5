"""Several self-play processes of one run, on roles that only count."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import UsageError
from tengen.experience import MAX_WRITERS
from tengen.launch import Budget
from tengen.launch.budget import Spending
from tengen.launch.reports.processes import Acting
from tengen.launch.schedule import run_schedule
from tengen.launch.workers import Worker, with_cores, workers_at_once
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig, StopListener, write_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.launch.fake_roles import CHOSEN, Fake, Journal, called, nothing

GAMES = 10


def config(*settings: str) -> RunConfig:
    made = make_config("tictactoe", None, None)
    length = f"agent.actor.games_per_generation={GAMES}"
    return override(made, [*CHOSEN, length, *settings])


class ManyPlayers:
    """A launcher of fakes, whose self-play processes finish in an odd order.

    Args:
        at_once: How many are to play at once, before the first one finishes.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._are_there = threading.Event()
        self.players: dict[int, Fake] = {}
        self._playing = 0
        self.most_playing = 0
        self._lock = threading.Lock()

    def start(self, worker: Worker) -> Fake:
        (role,) = worker.roles
        fake = Fake(role, self._play if role == "selfplay" else nothing)
        if role == "selfplay":
            self.players[worker.index] = fake
        return fake

    def _play(self, fake: Fake) -> dict[str, Any]:
        with self._lock:
            self._playing += 1
            self.most_playing = max(self.most_playing, self._playing)
            if self._playing >= self._at_once:
                self._are_there.set()
        assert self._are_there.wait(300)
        index = next(i for i, one in self.players.items() if one is fake)
        time.sleep(0.02 * (1 + index))
        with self._lock:
            self._playing -= 1
        return {
            "num_games": GAMES,
            "num_recovered": 0,
            "num_rows": 90,
            "num_evaluations": 900,
        }


@pytest.mark.parametrize(("games", "turns"), [(10, 1), (25, 3), (80, 8)])
def test_all_of_them_play_the_budget_and_no_generation_more(
    tmp_path: Path, games: int, turns: int
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    made = config("launch.roles.selfplay.count=3")
    write_config(run, made)
    launcher, journal = ManyPlayers(min(3, turns)), Journal()
    any_launcher: Any = launcher
    with StopListener(run) as stop:
        budget = Budget(games=games)
        call = called(made, run, budget, journal, stop, num_threads=8)
        run_schedule(any_launcher, call)
    played = journal.of("selfplay")
    assert len(played) == turns
    assert sum(fake.num_turns for fake in launcher.players.values()) == turns
    assert launcher.most_playing == min(3, turns)
    assert {report["player"] for report in played} <= {0, 1, 2}


def test_a_generation_that_goes_on_takes_only_what_is_left_of_it() -> None:
    spending = Spending(Budget(games=30))
    spending.begin_turn("selfplay-0", 20)
    assert not spending.is_taken()
    spending.begin_turn("selfplay-1", 20)
    assert spending.is_taken()
    # Fifteen of them an earlier call had finished.
    spending.note({"num_recovered": 15}, "selfplay-0")
    spending.note({"num_recovered": 0}, "selfplay-0")
    assert not spending.is_taken()
    report = {"num_games": 20, "num_recovered": 15}
    spending.end_turn(report, counts_frames=False, who="selfplay-0")
    spending.begin_turn("selfplay-2", 5)
    assert spending.is_taken()
    spending.drop_turn("selfplay-1")
    assert not spending.is_taken()
    spending.end_turn({"num_games": 25}, counts_frames=False, who="selfplay-2")
    assert spending.is_taken()
    assert spending.is_over()
    assert not Spending(Budget(minutes=1.0)).is_taken()


def test_what_they_tell_is_told_as_one() -> None:
    players = Acting(2)
    half = {"num_games": 3, "num_evaluations": 100, "seconds": 1.0}
    assert players.progress("selfplay-0", {"stage": "x"}) == {"stage": "x"}
    assert players.progress("selfplay-0", half)["num_games"] == 3
    told = players.progress(
        "selfplay-1", {"num_games": 4, "num_evaluations": 600, "seconds": 2.0}
    )
    assert (told["num_games"], told["num_evaluations"]) == (7, 700)
    assert told["evaluations_per_s"] == 400.0  # the sum of both rates
    done = {"num_games": 5, "num_rows": 50, "num_evaluations": 500}
    told = players.report("selfplay-0", 0, done, 5.0)
    assert (told["num_games"], told["num_flying"], told["player"]) == (5, 4, 0)
    assert (told["rows_per_s"], told["evaluations_per_s"]) == (10.0, 100.0)
    stopped = {**done, "stopped": True}
    told = players.report("selfplay-1", 1, stopped, 2.5)
    assert (told["num_flying"], told["rows_per_s"]) == (5, 30.0)
    told = players.report("selfplay-0", 0, stopped, 5.0)
    assert told["num_flying"] == 10
    half = {"num_games": 8, "num_sealed": 6}
    told = players.progress("selfplay-0", half)
    assert (told["num_games"], told["num_sealed"]) == (5 + 2, 0)
    alone = Acting(1)
    assert alone.progress("selfplay", half) is half
    assert alone.report("selfplay", 0, done, 1.0) is done


def test_they_divide_the_cores_of_their_machine() -> None:
    made = config("launch.roles.selfplay.count=3")
    workers = workers_at_once(made, 16)
    threads = {one.name: (one.index, one.num_threads) for one in workers}
    assert threads == {
        "selfplay-0": (0, 4),
        "selfplay-1": (1, 4),
        "selfplay-2": (2, 4),
        "learn": (0, 4),
        "export": (0, 1),
        "gate": (0, 1),
        "rate": (0, 1),
    }
    # Two of them on another machine, without the learner.
    there = with_cores(made, workers[1:3], 9)
    assert [one.num_threads for one in there] == [4, 4]
    here = with_cores(made, workers[3:], 6)
    assert [one.num_threads for one in here] == [6, 1, 1, 1]
    assert [one.num_threads for one in with_cores(made, workers[:3], 1)] == [1, 1, 1]


def test_more_of_them_than_there_are_writers_are_refused() -> None:
    most = config(f"launch.roles.selfplay.count={MAX_WRITERS}")
    assert most.launch.of("selfplay").count == MAX_WRITERS
    with refused(UsageError, "launch.roles.selfplay.count (1025)"):
        config(f"launch.roles.selfplay.count={MAX_WRITERS + 1}")
