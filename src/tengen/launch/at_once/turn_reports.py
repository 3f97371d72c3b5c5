"""The reports of turns where all roles work at once, collected for the journal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tengen.agents import Schedule
from tengen.launch.at_once.workers import Worker
from tengen.launch.budget import Spending
from tengen.launch.reports.journal import RunJournal
from tengen.launch.reports.processes import Actors, Players
from tengen.observe import BusyTimes

__all__ = ["TurnReports"]

_TELL_S = 2.0


class TurnReports:
    """Combines the reports of all turns into one view of the run. Not thread-safe.

    Args:
        schedule: Which role acts, learns and so on.
        spending: Counts what was played and stepped.
        journal: Gets the reports that are worth keeping.
        workers: The processes of the run at its start.
    """

    def __init__(
        self,
        schedule: Schedule,
        spending: Spending,
        journal: RunJournal,
        workers: Sequence[Worker],
    ) -> None:
        self._schedule = schedule
        self._spending = spending
        self._journal = journal
        self._busy = BusyTimes()
        self._stages: dict[str, str] = {}
        self._rated_s = 0.0
        self._last_s: dict[str, float] = {}
        self._told_s: dict[str, float] = {}
        num_acting = sum(one.roles == (schedule.acting,) for one in workers)
        self._acting = Actors() if schedule.serving else Players(num_acting)

    @property
    def publishing_s(self) -> float:
        """Seconds that the last model took from its checkpoint to its publication."""
        return self._last_s.get("export", 0.0) + self._last_s.get("gate", 0.0)

    @property
    def rated_s(self) -> float:
        """Seconds of this call spent on rating models."""
        return self._rated_s

    def count(self, num_acting: int, leaving: Sequence[Worker]) -> None:
        """Sets how many processes act from now on, and which have ended."""
        self._acting.count(num_acting, [worker.name for worker in leaving])

    def begin(self, worker: Worker, role: str) -> None:
        """Notes that a turn begins."""
        self._busy.begin(_busy_name(worker, role))

    def progress(
        self,
        worker: Worker,
        role: str,
        report: dict[str, Any],
        workers: Sequence[Worker],
    ) -> None:
        """Takes a progress report of a turn, and shows the progress of all turns.

        Args:
            worker: Whose turn it is.
            role: The role of the turn.
            report: The progress report.
            workers: The processes of the run.
        """
        if "starting" in report:
            self._journal.progress(report)
            return
        if role == self._schedule.acting:
            self._spending.note(report, worker.name)
            report = dict(self._acting.progress(worker.name, report))
        if "stage" in report:
            self._stages[role] = report["stage"]
        roles = dict.fromkeys(role for one in workers for role in one.roles)
        told = (self._stages.get(name, "") for name in roles)
        stage = ", ".join(filter(None, dict.fromkeys(told)))
        self._journal.progress({**report, "stage": stage})

    def end(self, worker: Worker, role: str, report: Mapping[str, Any] | None) -> None:
        """Notes that a turn ended; without a report it had nothing to do, or failed."""
        idle_s = 0.0 if report is None else report.get("idle_s", 0.0)
        name = _busy_name(worker, role)
        self._busy.end(name, worked=report is not None, idle_s=idle_s)
        self._stages.pop(role, None)

    def take(
        self,
        worker: Worker,
        role: str,
        report: dict[str, Any],
        seconds: float,
        workers: Sequence[Worker],
    ) -> None:
        """Counts what a turn did, and keeps its report.

        Args:
            worker: Whose turn it was.
            role: The role of the turn.
            report: What it did.
            seconds: How long it took.
            workers: The processes of the run.
        """
        schedule = self._schedule
        # The first turn of a call includes a process's start, so its time is not
        # typical.
        is_first = role not in self._last_s
        self._last_s[role] = 0.0 if is_first else seconds
        if is_first and role == (schedule.acting or "learn"):
            self._busy.restart()
        if role == schedule.acting:
            counts_frames = schedule.counts_frames
            self._spending.end_turn(
                report, counts_frames=counts_frames, who=worker.name
            )
            told = self._acting.report(worker.name, worker.index, report, seconds)
            report = dict(told)
        if role == schedule.rating:
            self._rated_s += seconds
        if schedule.serving and not self._is_worth_telling(worker, role, report):
            return
        self._journal.report(role, report, seconds)
        if role == schedule.learning[-1] and not report.get("stopped"):
            self._journal.end_generation(self._shares(workers))

    def _is_worth_telling(
        self, worker: Worker, role: str, report: Mapping[str, Any]
    ) -> bool:
        """Returns whether a report is kept: not every one of dozens a second is."""
        name, now_s = f"{worker.name} {role}", time.monotonic()
        is_rare = now_s - self._told_s.get(name, -_TELL_S) >= _TELL_S
        if is_rare or "warning" in report or report.get("stopped"):
            self._told_s[name] = now_s
            return True
        return False

    def _shares(self, workers: Sequence[Worker]) -> dict[str, float]:
        """Returns each role's share of time at work, the mean over its processes."""
        shares = self._busy.shares()
        own: dict[str, list[float]] = {}
        for one in workers:
            if one.name in shares:
                own.setdefault(one.roles[0], []).append(shares.pop(one.name))
        return shares | {role: sum(each) / len(each) for role, each in own.items()}


def _busy_name(worker: Worker, role: str) -> str:
    """Returns the name under which the time of a process's role is kept."""
    return worker.name if role == worker.roles[0] else role
