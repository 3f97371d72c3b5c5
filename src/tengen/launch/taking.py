"""Runs the turns of a call's roles, and processes their reports.

A process may wait forever for cluster resources, if the run is too large or a host was
lost. So ``Waiting`` limits the time for which a required role, or all acting processes,
may wait.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tengen.errors import RunError
from tengen.experience import TRAIN_WRITER, sealed_generation, writer_directory
from tengen.launch.budget import Spending
from tengen.launch.crew import Crew
from tengen.launch.launcher import TrainingCall
from tengen.launch.reports.processes import Acting
from tengen.launch.workers import Worker
from tengen.observe.roles import Spans
from tengen.roles.config.launch import LaunchConfig
from tengen.roles.config.run_config import Schedule
from tengen.roles.config.run_file import record_generation

_TELL_S = 2.0


class TurnTaker:
    """Runs turns, and passes their reports to the spending and the journal.

    Each schedule is a subclass that decides when a role takes a turn. Thread-safe.

    Args:
        call: The call. Its journal receives reports, but not the most frequent ones.
        spending: The call's budget and the spent part of it.
        crew: The processes.
        at_once: Whether roles work concurrently.
    """

    def __init__(
        self, call: TrainingCall, spending: Spending, crew: Crew, *, at_once: bool
    ) -> None:
        self._config = config = call.config
        self._schedule = schedule = config.schedule
        self._run = call.run
        self._journal = call.journal
        self._stop = call.stop
        self._spending = spending
        self._crew = crew
        self._at_once = at_once
        # Guards ``spending`` and all attributes below. Not held during a turn.
        self._lock = threading.RLock()
        self._waiting = Waiting(schedule, config.launch)
        # Whether each report shows changes of the waiting processes. Before the call
        # ends, the schedule's loop shows them.
        self._tells_at_once = False
        # The roles that had a turn, and the duration of their latest turn. A first turn
        # counts as 0 s, because it includes the start of its process.
        self._begun: set[str] = set()
        self._last_s: dict[str, float] = {}
        self._rated_s = 0.0
        num_acting = sum(schedule.acting in one.roles for one in crew.workers)
        serves = at_once and bool(schedule.serving)
        self._acting = Acting(num_acting, are_actors=serves)
        # Minimum interval of logged reports, as actors send dozens of them per second.
        self._least_s = _TELL_S if serves else 0.0
        self._told_s: dict[str, float] = {}
        self._stages: dict[str, str] = {}
        # The roles that must read the config again in their next turn.
        self._changed: set[str] = set()
        # The time of the first acting turn, the start time of each role's current turn,
        # and the time spans of its completed turns.
        self._since_s = time.monotonic()
        self._begun_s: dict[str, float] = {}
        self._spans: dict[str, Spans] = {}

    @property
    def _publishing_s(self) -> float:
        """Seconds from the checkpoint to the publication of the most recent model."""
        return self._last_s.get("export", 0.0) + self._last_s.get("gate", 0.0)

    def _turn(self, worker: Worker, role: str, **more: Any) -> dict[str, Any] | None:
        """Runs a turn and returns its report; None if there was nothing to do. Blocks.

        Args:
            worker: The process.
            role: A role of ``worker``.
            **more: Additional details for the turn; see ``RoleHost.turn``.

        Raises:
            UsageError: The role rejected its config or files.
            RunError: The role failed, or waited too long for cluster resources.
        """
        is_acting = role == self._schedule.acting
        sealed = None
        if is_acting and not self._schedule.counts_frames:
            folder = writer_directory(self._run, TRAIN_WRITER + worker.index)
            sealed = sealed_generation(folder)
        with self._lock:
            details: dict[str, Any] = {
                **self._spending.outlook(),
                "sealed": sealed,
                "follow_models": self._at_once,
                "frames_left": self._spending.frames_left(),
                "generation_s": self._spending.generation_s,
                "counts_cpu": self._spending.counts_cpu,
                "is_changed": role in self._changed,
                **more,
            }
            self._changed.discard(role)
            if not worker.is_follower:
                self._begun_s[_busy_name(worker, role)] = time.monotonic()
        start_s = time.monotonic()

        def on_death(role: str, how: str) -> None:
            with self._lock:
                self._acting.lost(worker.name)
                self._journal.death("learn" if worker.is_follower else role, how)

        report = None
        try:
            report = self._crew.handle(worker).turn(
                role,
                functools.partial(self._on_progress, worker, role),
                on_death,
                details,
            )
            with self._lock:
                self._spending.count(report or {})
                if role == "learn" and self._at_once and not self._schedule.acting:
                    # Another run plays the games, so learning is the first work.
                    self._spending.begin_work()
        finally:
            with self._lock:
                self._end(worker, role, report)
        # Skip followers, because the leading learner's reports include their work.
        if not worker.is_follower:
            with self._lock:
                self._note(worker, role, report, time.monotonic() - start_s)
        fitted = (report or {}).get("fitted") if is_acting else None
        if fitted is not None and record_generation(self._run, fitted):
            # Roles that wait for rows must read the reduced number from the config.
            with self._lock:
                self._changed |= {"learn", "shuffle"} & {*self._schedule.learning}
        return report

    def _tell_who_waits(self) -> None:
        """Shows the processes that wait for cluster resources, if they have changed."""
        with self._lock:
            if (names := self._waiting.news()) is not None:
                self._journal.waiting(names)

    def _shares(self) -> dict[str, float]:
        """Returns the fraction of time that each role works, averaged over processes.

        A turn in progress counts up to now. Turns without work are so short that they
        add almost nothing.
        """
        now_s = time.monotonic()
        shares = {
            name: self._spans.get(name, Spans()).share(
                self._since_s, now_s, self._begun_s.get(name)
            )
            for name in self._spans.keys() | self._begun_s.keys()
        }
        own: dict[str, list[float]] = {}
        for one in self._crew.workers:
            if one.name in shares:
                own.setdefault(one.roles[0], []).append(shares.pop(one.name))
        return shares | {role: sum(each) / len(each) for role, each in own.items()}

    def _on_progress(self, worker: Worker, role: str, report: dict[str, Any]) -> None:
        with self._lock:
            self._spending.count(report)
        if worker.is_follower:
            return
        if "starting" in report:  # sent while the process may still wait
            with self._lock:
                self._journal.progress(report)
            return
        self._note_room(worker, report.get("waiting_s"))
        with self._lock:
            if role == self._schedule.acting:
                self._spending.note(report, worker.name)
                report = dict(self._acting.progress(worker.name, report))
            if "stage" in report:
                self._stages[role] = report["stage"]
            roles = dict.fromkeys(
                role for one in self._crew.workers for role in one.roles
            )
            told = (self._stages.get(name, "") for name in roles)
            stage = ", ".join(filter(None, dict.fromkeys(told)))
            self._journal.progress({**report, "stage": stage})

    def _note_room(self, worker: Worker, waiting_s: float | None) -> None:
        """Records that a process waits for cluster resources, or has started.

        Raises:
            RunError: A process that the run needs has waited too long.
        """
        with self._lock:
            self._waiting.note(worker, waiting_s)
            if self._tells_at_once:
                self._tell_who_waits()
            if waiting_s is None:
                return
            if worker.roles == (self._schedule.acting,):
                # Leave the games to other processes, as this one may never start.
                self._spending.drop_turn(worker.name)
            is_late = self._spending.is_late()
            if not is_late:
                self._waiting.check(self._crew.workers)
        if is_late:
            # The budget is spent, so the process is no longer needed.
            self._crew.handle(worker).stop()

    def _end(self, worker: Worker, role: str, report: Mapping[str, Any] | None) -> None:
        """Records a turn's end; ``report`` is None if it did nothing or failed."""
        name = _busy_name(worker, role)
        begun_s = self._begun_s.pop(name, None)
        self._stages.pop(role, None)
        if begun_s is not None and report is not None:
            # The time that a turn waited for other roles does not count as work.
            ended_s = time.monotonic() - report.get("idle_s", 0.0)
            self._spans.setdefault(name, Spans()).add(begun_s, max(begun_s, ended_s))

    def _note(
        self, worker: Worker, role: str, report: dict[str, Any] | None, seconds: float
    ) -> None:
        """Adds a turn's report to the statistics and to the journal."""
        schedule = self._schedule
        is_acting = role == schedule.acting
        was_stopped = report is not None and report.keys() <= {"stopped"}
        if not was_stopped:
            self._waiting.note(worker, None)
        if report is not None or role != schedule.serving:
            self._begun.add(role)
        if report is None or was_stopped:
            if is_acting:
                self._spending.drop_turn(worker.name)
            return
        is_first = role not in self._last_s
        self._last_s[role] = 0.0 if is_first else seconds
        if is_first and role == (schedule.acting or "learn"):
            self._since_s, self._spans = time.monotonic(), {}
        if is_acting:
            counts_frames = schedule.counts_frames
            self._spending.end_turn(
                report, counts_frames=counts_frames, who=worker.name
            )
            report = dict(
                self._acting.report(worker.name, worker.index, report, seconds)
            )
        if role == schedule.rating:
            self._rated_s += seconds
        if self._is_worth_telling(f"{worker.name} {role}", report):
            self._journal.report(role, report, seconds)
            is_last = role == schedule.learning[-1] and not report.get("stopped")
            if self._at_once and is_last:
                self._journal.end_generation(self._shares())

    def _is_worth_telling(self, name: str, report: Mapping[str, Any]) -> bool:
        now_s = time.monotonic()
        is_rare = now_s - self._told_s.get(name, -_TELL_S) >= self._least_s
        if is_rare or "warning" in report or report.get("stopped"):
            self._told_s[name] = now_s
            return True
        return False


def _busy_name(worker: Worker, role: str) -> str:
    """Returns the key for the working time of ``role`` in process ``worker``."""
    return worker.name if role == worker.roles[0] else role


class Waiting:
    """Tracks processes that wait for cluster resources. Not thread-safe.

    Args:
        schedule: The run's schedule.
        launch: The run's launch config with the time limit ``wait_minutes``.
    """

    def __init__(self, schedule: Schedule, launch: LaunchConfig) -> None:
        self._needed = {*schedule.learning, schedule.serving}
        # The acting role; a run can continue if at least one of its processes works.
        self._acting = (schedule.acting,)
        self._most_minutes = launch.wait_minutes
        # The waiting time in seconds of each process, from its latest report.
        self._seconds: dict[str, float] = {}
        self._had_room: set[str] = set()
        self._told: list[str] = []

    def note(self, worker: Worker, seconds: float | None) -> None:
        """Records that a process waits, or that it has started.

        Args:
            worker: The process.
            seconds: The waiting time in seconds; None if the process has started.
        """
        if seconds is not None:
            self._seconds[worker.name] = seconds
            return
        self._seconds.pop(worker.name, None)
        self._had_room.add(worker.name)

    def forget(self, worker: Worker) -> None:
        """Removes a process that has left from the waiting processes."""
        self._seconds.pop(worker.name, None)

    def news(self) -> list[str] | None:
        """Returns the names of waiting processes; None if they have not changed."""
        names = list(self._seconds)
        if names == self._told:
            return None
        self._told = names
        return names

    def check(self, workers: Sequence[Worker]) -> None:
        """Checks that no required role has waited too long for cluster resources.

        Args:
            workers: All processes of the call, except those that have left.

        Raises:
            RunError: A role that the run needs has waited too long.
        """
        needed = self._needed_of(workers)
        spans = [self._seconds[one.name] for one in needed if one.roles != self._acting]
        acting = [
            self._seconds[one.name] for one in needed if one.roles == self._acting
        ]
        if acting:
            # The minimum is the time since the last acting process stopped working.
            spans.append(min(acting))
        if max(spans, default=0.0) >= 60 * self._most_minutes:
            raise RunError(
                f"role ({_names(needed)}) has waited for cluster resources for "
                f"{self._most_minutes:g} minutes; see ray status, free some, add hosts "
                "or raise launch.wait_minutes, then run the same command again"
            )

    def check_end(self, workers: Sequence[Worker]) -> None:
        """Checks, when the budget is spent, that no required process is waiting.

        Args:
            workers: See ``check``.

        Raises:
            RunError: A role that the run needs is waiting for cluster resources.
        """
        needed = self._needed_of(workers)
        if needed:
            had_room = any(one.name in self._had_room for one in needed)
            raise RunError(
                f"role ({_names(needed)}) {'had no' if had_room else 'never had'} room "
                "in the cluster when the budget was spent; see ray status, request "
                "less or add hosts, then run the same command again to resume"
            )

    def _needed_of(self, workers: Sequence[Worker]) -> list[Worker]:
        """Returns the processes that are waiting and that the run needs."""
        waiting = [one for one in workers if one.name in self._seconds]
        needed = [one for one in waiting if self._needed & {*one.roles}]
        acting = [one for one in workers if one.roles == self._acting]
        # Acting processes are needed only if none of them works.
        if all(one in waiting for one in acting):
            needed += acting
        return needed


def _names(workers: Sequence[Worker]) -> str:
    return ", ".join(one.name for one in workers)
