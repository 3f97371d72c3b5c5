"""Combines the roles' reports into ``Progress`` for the view, status and event file."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen.launch.budget import Spending
from tengen.launch.reports.processes import RATES, Servers, num_flying
from tengen.observe import (
    EventWriter,
    Progress,
    View,
    at_once_verdict,
    batch_fill,
    environment_verdict,
    room_verdict,
    verdict,
    waiting_verdict,
)

_WAIT = "wait"
_OF_LEARNING = {
    "loss": "loss",
    "total_steps": "num_steps",
    "lag_steps": "lag_steps",
    "num_learners": "num_learners",
}
_OF_TABLE = ("num_games", "num_rows", "num_episodes")


class RunJournal:
    """Logs all reports of a call, and combines them into progress. Not thread-safe.

    Rates are averages over the call: the rows of completed acting turns, and their
    evaluations plus those of the turn in progress, are divided by the elapsed time.

    Args:
        view: Shows progress.
        events: Stores every report and, after each generation, the progress.
        acting: The acting role, for the verdict about the bottleneck.
        last: The last progress of the previous call, whose counts are continued.
        lighter: The advice of ``observe.lighter_learning``, for the verdict in
            environments.
        clock: Returns monotonic time in seconds.
    """

    def __init__(
        self,
        view: View,
        events: EventWriter,
        *,
        acting: str,
        last: Progress | None,
        lighter: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._events = events
        self._acting = acting
        self._clock = clock
        self._start_s = clock()
        self._spending: Spending | None = None
        self._num_evaluating = 0
        self._state = dataclasses.replace(
            last or Progress(generation=0, elapsed_s=0.0),
            stage="starting",
            verdict="",
            cpu_s=None,
            rows_per_s=None,
            evaluations_per_s=None,
            acting_rows_per_s=None,
            acting_evaluations_per_s=None,
        )
        self._lighter = lighter
        # Whether any process has begun its work; the start-up steps shown so far.
        self._has_begun = False
        self._told_starting: set[str] = set()
        self._spans: dict[str, float] = {}
        self._servers = Servers(clock)
        # The report of the most recent acting turn.
        self._played: Mapping[str, Any] = {}
        self._has_learned = False
        self._lacks = ""
        # Names of the processes that wait for cluster resources.
        self._waiting: list[str] = []
        # The number of games in the learner's table, and the games of each generation
        # sealed since the table's last report. Games in progress are added for display.
        self._games = self._state.num_games or 0
        self._unlearned: dict[int, int] = {}
        # The mean return of episodes in this call; None before an episode has ended.
        self.mean_return: float | None = None

    def begin(self, spending: Spending) -> None:
        """Sets the call's spending. Must be called before any report is passed.

        Args:
            spending: The call's time and experience, which the journal only reads.
        """
        self._spending = spending

    @property
    def progress_now(self) -> Progress:
        """The run's progress at this time."""
        return self._stamped()

    @property
    def unlearned(self) -> str:
        """Why this call has no learner step yet; "" if it has learner steps."""
        if self._has_learned:
            return ""
        if self._in_environments and not self._lacks:
            return "no item of experience was completed; collect more steps"
        return self._lacks

    def progress(self, report: Mapping[str, Any]) -> None:
        """Shows the counts of a turn in progress. Cheap to call often.

        A report with ``starting`` describes a start-up step of a process.
        """
        if "starting" in report:
            self._show_start(report["starting"])
            return
        self._has_begun = True
        if "gate" in report:
            self._events.write("gate", **report["gate"])
        changes: dict[str, Any] = {"stage": report.get("stage", self._state.stage)}
        if "num_games" in report:
            changes["num_games"] = self._num_sealed + num_flying(report)
        if report.get("seconds") and "num_evaluations" in report:
            self._num_evaluating = report["num_evaluations"]
            rate = self._num_evaluating / report["seconds"]
            changes["acting_evaluations_per_s"] = report.get("evaluations_per_s", rate)
        if "loss" in report:
            changes["loss"] = report["loss"]
        self._view.update(self._stamped(**changes))

    def _show_start(self, what: str) -> None:
        stage = what  # models are compiled and environments created later, too
        if not self._has_begun:
            stage = f"starting: {what}"
            # Show a start-up step only once, because several processes report it.
            if what not in self._told_starting:
                self._told_starting.add(what)
                self._view.starting(what)
        self._view.update(self._stamped(stage=stage))

    def death(self, role: str, how: str) -> None:
        """Shows and logs that a role's process died and is being restarted.

        Args:
            role: The role whose turn was in progress.
            how: A description such as ``signal 9`` or ``exit code 3``.
        """
        self._events.write("death", role=role, how=how)
        self._view.message(f"role ({role}) died, {how}; it is being restarted")

    def waiting(self, names: Sequence[str]) -> None:
        """Shows and logs which processes wait for cluster resources.

        Args:
            names: Names of the waiting processes; empty if no process waits any more.
        """
        self._waiting = list(names)
        self._events.write("waiting", names=self._waiting)
        told = room_verdict(self._waiting) if names else ""
        self._view.message(told or "every process has its cluster resources now")
        # Set the verdict now, because the generation may not end during the wait.
        self._state = dataclasses.replace(self._state, verdict=told)
        self._events.write("progress", **self.progress_now.to_dict())

    def ended_late(self, name: str, why: str) -> None:
        """Logs an error that an acting process raised while the call was ending.

        Args:
            name: The name of the process.
            why: The error message.
        """
        self._events.write("late", name=name, why=why)

    def scaled(self, role: str, count: int, refused: str, outgrown: str = "") -> None:
        """Shows and logs that the number of a role's processes has changed.

        Args:
            role: The role.
            count: The new number of processes.
            refused: Why there are fewer processes than requested, or empty.
            outgrown: A warning that memory is sized for fewer processes, or empty.
        """
        self._events.write("scaled", role=role, count=count, refused=refused)
        parts = (f"role ({role}) now has {count} processes", refused, outgrown)
        self._view.message("; ".join(part for part in parts if part))

    def report(self, role: str, report: Mapping[str, Any], seconds: float) -> None:
        """Logs the report of a turn, shows its messages, and updates the progress."""
        self._events.write("turn", role=role, turn_s=round(seconds, 3), **report)
        for gap in report.get("journal_gaps", ()):
            self._view.message(gap)
        self._spans[role] = self._spans.get(role, 0.0) + seconds
        for name in ("warning", "told"):
            if name in report:
                self._view.message(report[name])
        changes: dict[str, Any] = {}
        if role in ("selfplay", "actor") and "num_evaluations" in report:
            changes = self._after_playing(report, seconds)
        elif role == "learn":
            changes = self._after_learning(report)
        elif role == "inference":
            changes = self._after_serving(report)
        elif role == "rate" and "rating" in report:
            changes = {
                "rating": report["rating"],
                "rating_error": report["rating_error"],
            }
        self._state = dataclasses.replace(self._state, **changes)
        self._view.update(self.progress_now)

    def waited(self, seconds: float) -> None:
        """Adds seconds that the call waited for new games of another run."""
        self._spans[_WAIT] = self._spans.get(_WAIT, 0.0) + seconds

    def end_generation(self, busy: Mapping[str, float] | None = None) -> None:
        """Shows and logs the run's progress when a generation has been learned from.

        Args:
            busy: The fraction of time in which each role works, in [0, 1], if roles
                work concurrently; None if roles take turns.
        """
        spans, self._spans = self._spans, {}
        if busy is not None:
            # Learning may begin before the first generation ends, with parts of it.
            has_played = not self._acting or bool(self._played)
            if "learn" not in busy or not (has_played or self._has_learned):
                return  # this call has not played or learned yet
            told = room_verdict(self._waiting)
            if has_played:
                told = told or self._at_once_verdict(busy)
            if self._in_environments:
                waits = self._played["answer_wait"] + self._played["room_wait"]
                self._waits(1.0 - waits, busy["learn"])
            if self._state.num_games is not None:  # environments have no games
                self._state = dataclasses.replace(
                    self._state, num_games=self._num_sealed
                )
        elif spans.keys() & {"selfplay", "actor", _WAIT}:
            total_s = max(1e-9, sum(spans.values()))
            shares = {name: span / total_s for name, span in spans.items()}
            told = self._turns_verdict(shares)
            if self._in_environments:
                self._waits(shares.get(self._acting, 0), shares.get("learn", 0))
        else:
            return  # a call's first turns only learn
        self._state = dataclasses.replace(self._state, stage="", verdict=told)
        cpu_s = None if self._spending is None else round(self._spending.cpu_s, 2)
        now = self._stamped(cpu_s=cpu_s)
        self._events.write("progress", **now.to_dict())
        self._view.generation(now)

    @property
    def _in_environments(self) -> bool:
        return "simulation_busy" in self._played

    def _stamped(self, **changes: Any) -> Progress:
        """Returns the progress with ``changes``, the current time, ETA and rates."""
        elapsed_s = round(self._clock() - self._start_s, 2)
        changes |= {"elapsed_s": elapsed_s, "eta_s": self._eta_s()}
        if self._spending is not None and elapsed_s > 0.0:
            num_evaluations = self._spending.num_evaluations + self._num_evaluating
            if self._spending.num_rows:
                changes["rows_per_s"] = self._spending.num_rows / elapsed_s
            if num_evaluations:
                changes["evaluations_per_s"] = num_evaluations / elapsed_s
        return dataclasses.replace(self._state, **changes)

    def _eta_s(self) -> float | None:
        """Returns the expected seconds until one of the call's budgets is spent.

        Assumes the average rate of games or frames since the first turn of work.
        """
        spending = self._spending
        if spending is None:
            return None
        ends = [spending.seconds_left]
        share = spending.experience_share
        if share:
            ends.append(spending.elapsed_s * (1.0 - share) / share)
        return min((end for end in ends if end is not None), default=None)

    def _waits(self, acting: float, learning: float) -> None:
        """Sets the wait shares, given the shares of time that roles act and learn."""
        self._state = dataclasses.replace(
            self._state,
            actor_wait_share=max(0.0, 1.0 - acting),
            learner_wait_share=max(0.0, 1.0 - learning),
        )

    def _after_serving(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Updates the servers' progress from the report of an inference server."""
        self._servers.take(report)
        return {
            "batch_fill": self._servers.batch_fill,
            "inference_wait_share": self._servers.wait_share,
            "servers": self._servers.each,
        }

    def _after_playing(
        self, report: Mapping[str, Any], seconds: float
    ) -> dict[str, Any]:
        self._has_begun = True
        self._played = report
        # Prefer the report's own seconds, which exclude the start of the process.
        seconds = max(report.get("seconds", seconds), 1e-9)
        self._num_evaluating = 0  # the report includes these evaluations
        changes = {
            f"acting_{rate}": report.get(rate, report[count] / seconds)
            for rate, count in RATES.items()
        }
        changes["cache_hit_share"] = report.get("cache_hit_share")
        changes["simulation_share"] = report.get("simulation_busy")
        # If there are inference servers, only their reports have the batch fill.
        if self._servers.busy is None:
            changes["batch_fill"] = batch_fill(report)
        if "num_games" in report:
            is_stopped = bool(report.get("stopped"))
            flying = num_flying(report) if is_stopped else 0
            flying = report.get("num_flying", flying)
            # If roles work concurrently, the learner may already count this generation.
            if not is_stopped and report["generation"] > self._state.generation:
                self._unlearned[report["generation"]] = report["num_games"]
            changes["num_games"] = self._num_sealed + flying
        if report.get("mean_return") is not None:
            changes["mean_return"] = self.mean_return = report["mean_return"]
        return changes

    def _after_learning(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Updates the run's totals from the counts of the learner's table.

        The table counts all durable experience, including that of killed processes.
        """
        table = report.get("table", {})
        changes = {name: table[name] for name in _OF_TABLE if name in table}
        if "num_games" in changes:
            self._games = changes["num_games"]
            learned = report.get("generation", 0)
            for generation in [g for g in self._unlearned if g <= learned]:
                del self._unlearned[generation]
            changes["num_games"] = self._num_sealed
        if "generation" in report:
            changes["generation"] = report["generation"]
        self._lacks = report.get("lacks", "")
        if report.get("num_steps"):
            self._has_learned = True
            changes |= {name: report.get(key) for key, name in _OF_LEARNING.items()}
        return changes

    @property
    def _num_sealed(self) -> int:
        return self._games + sum(self._unlearned.values())

    def _at_once_verdict(self, busy: Mapping[str, float]) -> str:
        if not self._acting:
            return waiting_verdict(busy["learn"], 1.0 - busy["learn"])
        if self._in_environments:
            inference = self._servers.busy
            return environment_verdict(self._played, busy, inference, self._lighter)
        return at_once_verdict(self._acting, self._played, busy)

    def _turns_verdict(self, shares: Mapping[str, float]) -> str:
        if _WAIT in shares:
            return waiting_verdict(shares.get("learn", 0.0), shares[_WAIT])
        return verdict(self._acting, self._played, shares, self._lighter)
